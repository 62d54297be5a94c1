# shellcheck shell=bash
# Bash's completion for disttrain, chiefd, psd and workerd. tools/reference/make replaces the next line by tables of what may
# follow each verb, from the programs themselves.
@tables

# Prints the cluster file that the command line names, or the default one. `words`: the words of the line.
_disttrain_cluster_file() {
  local i
  for ((i = 1; i + 1 < ${#words[@]}; ++i)); do
    if [[ ${words[i]} == --cluster ]]; then
      printf '%s' "${words[i + 1]}"
      return
    fi
  done
  printf '%s' "${DISTTRAIN_CLUSTER:-/etc/disttrain/cluster.toml}"
}

# Prints the names of the tasks in the cluster file. It counts the file's tables, so no daemon is asked.
_disttrain_tasks() {
  local file role count i
  file=$(_disttrain_cluster_file)
  echo chief/0
  for role in ps worker; do
    count=$(grep -c "^[[:space:]]*\[\[$role\]\]" -- "$file" 2>/dev/null)
    for ((i = 0; i < ${count:-0}; ++i)); do
      echo "$role/$i"
    done
  done
}

# _disttrain_fill KIND CURRENT: sets COMPREPLY to the words of this kind that begin with CURRENT.
_disttrain_fill() {
  local kind=$1 current=$2 word
  case $kind in
    "" | @none) ;;
    @file)
      compopt -o filenames
      mapfile -t COMPREPLY < <(compgen -f -- "$current")
      ;;
    @folder)
      compopt -o filenames
      mapfile -t COMPREPLY < <(compgen -d -- "$current")
      ;;
    @toml)
      compopt -o filenames
      mapfile -t COMPREPLY < <(
        compgen -d -- "$current"
        compgen -f -X '!*.toml' -- "$current"
      )
      ;;
    @task) mapfile -t COMPREPLY < <(compgen -W "$(_disttrain_tasks)" -- "$current") ;;
    @key)
      if [[ $current == *=* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "${_disttrain_keys[${current%%=*}]:-}" -P "${current%%=*}=" -- "${current#*=}")
        # If "=" separates words, readline already has the part before it.
        if [[ $COMP_WORDBREAKS == *=* ]]; then
          COMPREPLY=("${COMPREPLY[@]#*=}")
        fi
      else
        compopt -o nospace
        mapfile -t COMPREPLY < <(compgen -S = -W "${!_disttrain_keys[*]}" -- "$current")
      fi
      ;;
    *) mapfile -t COMPREPLY < <(compgen -W "$kind" -- "$current") ;;
  esac
}

_disttrain() {
  COMPREPLY=()
  # Splits the line at blanks only: readline's own words also end at "=" and ":".
  local words=() word i
  local line=${COMP_LINE:0:COMP_POINT}
  read -ra words <<<"$line"
  if [[ $line == *[[:space:]] ]]; then
    words+=("")
  fi
  local last=$((${#words[@]} - 1))
  local current=${words[last]} place=${words[0]##*/} option=""
  for ((i = 1; i < last; ++i)); do
    word=${words[i]}
    if [[ -n $option ]]; then
      option=""
    elif [[ -n ${_disttrain_values["$place $word"]:-} ]]; then
      option=$word
    elif [[ -n ${_disttrain_verbs[$place]:-} && " ${_disttrain_verbs[$place]} " == *" $word "* ]]; then
      place+=" $word"
    fi
  done
  if [[ -n $option ]]; then
    _disttrain_fill "${_disttrain_values["$place $option"]}" "$current"
  elif [[ $current == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "${_disttrain_flags[$place]:-}" -- "$current")
  else
    _disttrain_fill "${_disttrain_words[$place]:-}" "$current"
    mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -W "${_disttrain_verbs[$place]:-}" -- "$current")
  fi
}
complete -F _disttrain disttrain chiefd psd workerd
