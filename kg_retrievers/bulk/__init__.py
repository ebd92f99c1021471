"""Work on many batches.

The batches run in this process, in several processes of this machine, or on a cluster.
"""

from kg_retrievers.bulk.workers import LocalWorkers as LocalWorkers
from kg_retrievers.bulk.workers import Workers as Workers
from kg_retrievers.bulk.workers import check_workers as check_workers
from kg_retrievers.bulk.workers import map_batches as map_batches
