# The page (`serve`) or the tools for agents (`mcp`) over a graph, on the CPU, as a user without rights. It was checked by tests
# of its text, and not built.
#
#     docker build --tag kg-retrievers .
#     export KG_RETRIEVERS_TOKEN=...            sixteen characters or more, such as `openssl rand -hex 32`
#     docker run --rm --publish 127.0.0.1:8000:8000 --env KG_RETRIEVERS_TOKEN kg-retrievers
#     docker run ... --volume "$PWD/films-index:/home/reader/graph:ro" kg-retrievers      a folder of `kg-retrievers index`
#     docker run ... --publish 127.0.0.1:8765:8765 kg-retrievers mcp graph --http --host 0.0.0.0
#     docker run --rm --interactive kg-retrievers mcp graph                               on stdin and stdout
#
# Without a folder mounted at /home/reader/graph, it serves the sample graph.

FROM python:3.13.9-slim-bookworm AS build
WORKDIR /source
RUN python -m venv /opt/kg-retrievers
ENV PATH=/opt/kg-retrievers/bin:$PATH
COPY pyproject.toml README.md LICENSE constraints.txt ./
COPY requirements/core.txt requirements/core.txt
RUN pip install --no-cache-dir --no-deps --only-binary :all: --require-hashes --requirement requirements/core.txt
COPY kg_retrievers kg_retrievers
RUN pip install --no-cache-dir --constraint constraints.txt ".[serve,mcp,rdf,neo4j,sparql]"

FROM python:3.13.9-slim-bookworm
RUN useradd --create-home --uid 10001 reader
COPY --from=build /opt/kg-retrievers /opt/kg-retrievers
ENV PATH=/opt/kg-retrievers/bin:$PATH NUMBA_CACHE_DIR=/home/reader/.cache/numba PYTHONDONTWRITEBYTECODE=1
USER reader
WORKDIR /home/reader
COPY kg_retrievers/sample/graph.jsonl sample.jsonl
RUN kg-retrievers index sample.jsonl --output graph && kg-retrievers demo > /dev/null
EXPOSE 8000 8765
ENTRYPOINT ["kg-retrievers"]
CMD ["serve", "graph", "--host", "0.0.0.0"]
