"""Work on many batches: in this process, in several of this machine, or on a cluster."""

from kg_retrievers.bulk.workers import LocalWorkers as LocalWorkers
from kg_retrievers.bulk.workers import Workers as Workers
from kg_retrievers.bulk.workers import map_batches as map_batches
