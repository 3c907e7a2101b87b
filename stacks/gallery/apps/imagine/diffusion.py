"""Stable Diffusion on a GPU, by diffusers."""

import io
from collections.abc import Callable

import torch
from diffusers import StableDiffusionPipeline


def load(repository: str, revision: str, steps: int = 25) -> Callable[[str, int], bytes]:
    """Download the weights, in half precision, and put them on the GPU.

    Args:
        repository: the model's repository on the Hugging Face Hub.
        revision: the commit of that repository.
        steps: denoising steps of a picture.
    """
    pipeline = StableDiffusionPipeline.from_pretrained(
        repository,
        revision=revision,
        variant="fp16",
        torch_dtype=torch.float16,
        use_safetensors=True,
    ).to("cuda")

    def paint(prompt: str, size: int) -> bytes:
        file = io.BytesIO()
        pipeline(prompt, height=size, width=size, num_inference_steps=steps).images[0].save(
            file, format="PNG"
        )
        return file.getvalue()

    return paint
