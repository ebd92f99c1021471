"""Work on many batches: in this process, in several of this machine, or on a cluster."""

from kg_retrievers.bulk.workers import LocalWorkers, Workers, map_batches

__all__ = ["LocalWorkers", "Workers", "map_batches"]
