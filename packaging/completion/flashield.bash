# Completion of flashield and its tools; the tables stand before, made from the options.

# Sets COMPREPLY to what may follow as a value of this kind.
_flashield_value() {
	local kind=$1 current=$2
	case $kind in
	@file)
		compopt -o filenames
		mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
	@directory)
		compopt -o filenames
		mapfile -t COMPREPLY < <(compgen -d -- "$current") ;;
	@user)
		mapfile -t COMPREPLY < <(compgen -u -- "$current") ;;
	@suboption)
		# A list with commas: what stands before the last one is kept.
		local before= names=() name
		[[ $current == *,* ]] && before=${current%,*},
		for name in "${!_flashield_suboptions[@]}"; do
			names+=("$before$name${_flashield_suboptions[$name]:+=}")
		done
		compopt -o nospace
		mapfile -t COMPREPLY < <(compgen -W "${names[*]}" -- "$current") ;;
	@text) COMPREPLY=() ;;
	*) mapfile -t COMPREPLY < <(compgen -W "$kind" -- "$current") ;;
	esac
}

_flashield() {
	local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} name
	COMPREPLY=()

	# bash makes "=" a word of its own: "--name = value", "-o name = value".
	if [[ $current == = ]]; then
		current=
		name=$previous
	elif [[ $previous == = ]] && ((COMP_CWORD >= 2)); then
		name=${COMP_WORDS[COMP_CWORD-2]}
	fi
	if [[ $name == --* ]]; then
		_flashield_value "${_flashield_options[$name]:-@text}" "$current"
	elif [[ $name ]]; then
		_flashield_value "${_flashield_suboptions[${name##*,}]:-@text}" "$current"
	elif [[ $previous == -* && ${_flashield_options[$previous]} ]]; then
		_flashield_value "${_flashield_options[$previous]}" "$current"
	else
		mapfile -t COMPREPLY < <(compgen -W "${!_flashield_options[*]}" -- "$current")
	fi
}

# The tools tell their options, and flashield-inspect its commands, themselves.
_flashield_tool() {
	local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} help words
	COMPREPLY=()

	if [[ $current == -* ]]; then
		words=$("$1" --help 2>/dev/null | grep -oE -e '^ +(-[a-zA-Z], )?--[a-z][a-z-]*|  --[a-z][a-z-]*' |
			grep -oE -e '--[a-z-]+')
		mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
		return
	fi
	case ${1##*/}:$previous in
	flashield-replay:--format|flashield-sim:--format) words='auto flashield memcachier twitter meta' ;;
	flashield-replay:--mode) words='look-aside literal gets-only' ;;
	flashield-replay:--ttl) words='none scaled real' ;;
	flashield-tracegen:--format) words='flashield memcachier' ;;
	flashield-record:--apps) words='hash name none' ;;
	flashield-bench:--daemon|flashield-bench:--memcached|flashield-bench:--dir) ;;
	flashield-bench:--json|flashield-bench:--base|flashield-bench:--path) ;;
	flashield-bench:*) words=$("$1" --list 2>/dev/null) ;;
	flashield-sim:--policy) words=$("$1" policies 2>/dev/null | grep -oE -e '^[a-z][a-z0-9-]*') ;;
	flashield-sim:--referee) words='own-A own-B' ;;
	flashield-sim:--changed-sizes) words='hit update' ;;
	flashield-sim:*) ((COMP_CWORD == 1)) && words='run size train paper policies' ;;
	flashield-admin:move)
		words='status cancel'
		_flashield_value @file "$current"
		;;
	flashield-admin:*) [[ " ${COMP_WORDS[*]:0:COMP_CWORD} " == *' move '* ]] || words='move' ;;
	flashield-inspect:--clock-mode) words='lru mfu' ;;
	flashield-inspect:--index) words='slots frugal' ;;
	flashield-inspect:--journal) words='off sync' ;;
	flashield-inspect:*)
		if ((COMP_CWORD > 1)) && [[ $previous != -* && " ${COMP_WORDS[*]} " != *' state '* ]]; then
			words='list verify find dump segment state'
		fi
		;;
	esac
	if [[ $words ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
	else
		_flashield_value @file "$current"
	fi
	# The only command in front of the file.
	[[ ${1##*/} != flashield-inspect || $COMP_CWORD -ne 1 || ! $current || state != "$current"* ]] || COMPREPLY+=(state)
}

complete -F _flashield flashield
complete -F _flashield_tool flashield-admin flashield-bench flashield-dump flashield-inspect flashield-load flashield-record flashield-replay flashield-sim flashield-top flashield-tracegen
