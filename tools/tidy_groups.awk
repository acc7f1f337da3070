# Groups C++ files for tools/check_tidy.sh: reads lines FILE:ANYTHING, prints lines of at most `most` of them that can be
# included into one translation unit. Two files cannot that define the same flag, `main`, or the same name in an unnamed
# namespace. A group's files are of one top folder, so that they share most headers.
function take(name) { if (name != "") mine[name] = 1 }

function read_names(file,   line, unnamed) {
  delete mine
  unnamed = 0
  while ((getline line < file) > 0) {
    if (line ~ /^namespace \{/) unnamed = 1
    else if (line ~ /^\}  \/\/ namespace$/) unnamed = 0
    else if (line ~ /^int main\(/) take("main")
    else if (match(line, /^ABSL_FLAG\([^,]*, [a-z0-9_]+/)) {
      line = substr(line, 1, RLENGTH)
      sub(/.*, /, "", line)
      take("FLAGS_" line)
    } else if (unnamed && line ~ /^(struct|class|enum class|enum|using) /) {
      sub(/^(enum class|[a-z]+) /, "", line)
      sub(/[^A-Za-z0-9_].*/, "", line)
      take(line)
    } else if (unnamed && line ~ /^[A-Za-z].*[A-Za-z0-9_](\(|\{| = |;|\[)/) {
      sub(/(\(|\{| = |;|\[).*/, "", line)
      sub(/.*[^A-Za-z0-9_]/, "", line)
      take(line)
    }
  }
  close(file)
}

function fits(group,   name) {
  if (folders[group] != folder || sizes[group] >= most) return 0
  for (name in mine) if ((group, name) in taken) return 0
  return 1
}

{
  file = folder = $0
  sub(/:.*/, "", file)
  sub(/\/.*/, "", folder)
  read_names(file)
  for (group = 1; group <= count; ++group) if (fits(group)) break
  if (group > count) folders[++count] = folder
  for (name in mine) taken[group, name] = 1
  sizes[group]++
  lines[group] = lines[group] (sizes[group] == 1 ? "" : " ") $0
}

END { for (group = 1; group <= count; ++group) print lines[group] }
