# isotone on a processor, with its English model:
#   docker build --tag isotone .
#   docker run --rm --user "$(id -u):$(id -g)" --volume "$PWD:/data" isotone align talk.wav talk.txt
FROM python:3.12-slim AS build
# torch without CUDA is a tenth of the size; torchaudio must be of the same build.
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY src src
COPY plugins plugins
RUN python -m venv /opt/isotone \
    && /opt/isotone/bin/pip install --no-cache-dir --index-url "$TORCH_INDEX" "torch>=2.9,<2.12" "torchaudio>=2.9,<2.12" \
    && /opt/isotone/bin/pip install --no-cache-dir . \
    && rm -rf /opt/isotone/lib/python3.12/site-packages/pip*

FROM python:3.12-slim
ENV PATH=/opt/isotone/bin:$PATH \
    NUMBA_CACHE_DIR=/opt/kernels \
    HOME=/tmp
COPY --from=build /opt/isotone /opt/isotone
# Most kernels are compiled here; on a processor of another kind they are compiled again, at the first use.
RUN mkdir -p /opt/kernels /data \
    && isotone doctor \
    && chmod -R a+rwX /opt/kernels /data
VOLUME /data
WORKDIR /data
USER 1000:1000
ENTRYPOINT ["isotone"]
CMD ["--help"]
