"""Prints the rows of a parquet file as JSON lines: read_parquet.py FILE COLUMN...

First line: {"columns": all columns of the file, "rows": their number}. Then one object for each row, with those of the
asked columns that the file has. Last line: {"end": true}, or {"error": a sentence}.
"""

import json
import math
import sys

_BATCH = 256  # rows in memory at once


def _plain(value):
    """The value as strict JSON has it: NaN becomes null, and what JSON does not know becomes a text."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value


def _print(value):
    sys.stdout.write(json.dumps(value, default=str, allow_nan=False) + "\n")


def _print_rows(path, wanted):
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        names = file.schema_arrow.names
        _print({"columns": names, "rows": file.metadata.num_rows})
        columns = [name for name in wanted if name in names]
        for batch in file.iter_batches(batch_size=_BATCH, columns=columns):
            for row in batch.to_pylist():
                _print({name: _plain(value) for name, value in row.items()})


def main():
    try:
        _print_rows(sys.argv[1], sys.argv[2:])
        _print({"end": True})
    except BrokenPipeError:
        sys.stderr.close()  # the reader has enough rows
        sys.exit(0)
    except Exception as error:
        _print({"error": " ".join(str(error).split())[:300] or type(error).__name__})
    sys.stdout.flush()


if __name__ == "__main__":
    main()
