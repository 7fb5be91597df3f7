"""Conditions on metadata: which there are, who may set them, what a store can take."""

from easyrag_core.filters._extracted import DroppedCondition, ExtractedConditions
from easyrag_core.filters._policy import FilterPolicy
from easyrag_core.filters._schema import FIELD_TYPES, FilterField
from easyrag_core.filters._split import split_filter
from easyrag_core.filters._tree import (
    OPERATORS,
    And,
    Condition,
    Filter,
    FilterScalar,
    FilterValue,
    Not,
    Or,
    all_of,
    any_of,
    conditions_in,
    filter_from_dict,
    filter_to_dict,
)

__all__ = [
    "FIELD_TYPES",
    "OPERATORS",
    "And",
    "Condition",
    "DroppedCondition",
    "ExtractedConditions",
    "Filter",
    "FilterField",
    "FilterPolicy",
    "FilterScalar",
    "FilterValue",
    "Not",
    "Or",
    "all_of",
    "any_of",
    "conditions_in",
    "filter_from_dict",
    "filter_to_dict",
    "split_filter",
]
