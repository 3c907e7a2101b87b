export PATH=/opt/berth/nested/bin:$PATH
if [ -n "$RAY_AUTH_TOKEN" ]; then
  export RAY_AUTH_TOKEN_PATH=$HOME/.ray/auth_token
  (umask 077 && mkdir -p "$HOME/.ray" && printf %s "$RAY_AUTH_TOKEN" >"$RAY_AUTH_TOKEN_PATH") && unset RAY_AUTH_TOKEN
fi
