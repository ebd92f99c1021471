"""Watches retrievers, workflows and chains at work: spans, counts and logs, without the texts of users.

`Spans` needs the extra `otel` and stands in `kg_retrievers.telemetry.spans`.
"""

from kg_retrievers.telemetry.counts import Counts
from kg_retrievers.telemetry.events import log_events
from kg_retrievers.telemetry.service import ServiceWatch, health, watch_service
from kg_retrievers.telemetry.watching import watching

__all__ = ["Counts", "ServiceWatch", "health", "log_events", "watch_service", "watching"]
