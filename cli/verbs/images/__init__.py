"""`berth images`."""

from berth.cli.reach.arguments import Json, Stack


def run(stack: Stack, *, as_json: Json = False) -> int:
    """List the images and charts of a stack, with the settings that name them.

    The list has the defaults that the stack uses, and the images of charts. For each image of a
    setting without a digest it has the command that asks its registry for one: crane, with your own
    login of docker. A digest names one content, which nobody can exchange; a tag may name another
    tomorrow. Write `IMAGE@DIGEST` into the setting.

    With `mirror.images`, images have the names of their copies, and the commands make the copies.

    Exit code 0, 2 if there is no such stack or its settings are wrong.

    Example: `berth images -s prod`
    """
    from berth.cli.verbs.images.listing import print_images

    return print_images(stack, as_json=as_json)
