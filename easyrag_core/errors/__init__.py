"""Every error that this project raises.

```
EasyRAGError
├── InvalidParameterError(ValueError)      .name .value
├── DimensionMismatchError(ValueError)     .expected .actual
├── ChunkNotFoundError(KeyError)           .ids
├── OutputParseError(ValueError)           .raw
├── IndexFormatError(ValueError)
├── AllChannelsFailedError                 .errors
├── ModelUnavailableError                  .attempts
│   ├── CircuitOpenError                   .retry_after
│   ├── FirstTokenTimeoutError(TimeoutError)
│   └── StreamInterruptedError             .partial
└── MissingDependencyError(ImportError)    .extra
```

Each leaf is also the builtin that a caller would catch without knowing us. A message
says what was given, what is allowed and what to do.
"""

from easyrag_core.errors._checks import (
    check_choice,
    check_count,
    check_names,
    check_number,
    check_text,
    check_texts,
    check_timeout,
)
from easyrag_core.errors._tree import (
    AllChannelsFailedError,
    ChunkNotFoundError,
    CircuitOpenError,
    DimensionMismatchError,
    EasyRAGError,
    FirstTokenTimeoutError,
    IndexFormatError,
    InvalidParameterError,
    MissingDependencyError,
    ModelUnavailableError,
    OutputParseError,
    StreamInterruptedError,
)

__all__ = [
    "AllChannelsFailedError",
    "ChunkNotFoundError",
    "CircuitOpenError",
    "DimensionMismatchError",
    "EasyRAGError",
    "FirstTokenTimeoutError",
    "IndexFormatError",
    "InvalidParameterError",
    "MissingDependencyError",
    "ModelUnavailableError",
    "OutputParseError",
    "StreamInterruptedError",
    "check_choice",
    "check_count",
    "check_names",
    "check_number",
    "check_text",
    "check_texts",
    "check_timeout",
]
