"""Writes the rows of a Parquet file to stdout as JSON Lines, after a line with their number and the file's columns.

python3 read_parquet.py FILE [COLUMN...]        on an error: one sentence on stderr, exit code 1

Only the given columns are read, without any all. A row of a file that has none of them becomes an object with the
names of all columns, so that the reader can name them.
"""

import json
import sys

ROWS_AT_ONCE = 256


def main(path: str, wanted: list) -> int:
    try:
        import pyarrow.parquet
    except ImportError as error:
        print(f"Parquet files need the Python package pyarrow ({error})", file=sys.stderr)
        return 1
    try:
        file = pyarrow.parquet.ParquetFile(path)
        names = file.schema_arrow.names
        print(json.dumps({"rows": file.metadata.num_rows, "columns": names}))
        used = [name for name in wanted if name in names] if wanted else names
        if not used:
            for _ in range(file.metadata.num_rows):
                print(json.dumps(dict.fromkeys(names)))
            return 0
        for batch in file.iter_batches(batch_size=ROWS_AT_ONCE, columns=used):
            for row in batch.to_pylist():
                # Values that JSON lacks, such as bytes and dates, are not text for the reader either.
                print(json.dumps(row, default=lambda value: None))
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has all rows that it wants. Python would complain once more at the end.
        sys.stdout = None
    except Exception as error:  # pylint: disable=broad-except
        reason = str(error).strip().split("\n")[0]
        print(f"no sound Parquet file ({reason})", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
