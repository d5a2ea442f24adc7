# A terminal multiplexer with a shell in it.
export TERM=xterm LANG=C.UTF-8 SHELL=/bin/bash HOME=$PWD
tmux -S $PWD/t -f /dev/null new-session -d -x 80 -y 24 'PS1="% " bash --norc'
tmux -S $PWD/t send-keys 'echo hello $((6*7))' Enter; sleep 0.5; tmux -S $PWD/t capture-pane -p | grep -v '^$'; tmux -S $PWD/t split-window 'sleep 5'; tmux -S $PWD/t list-panes -F '#{pane_index} #{pane_width}x#{pane_height}'; tmux -S $PWD/t kill-server; echo rc $?
