# A server and its clients over a socket: scripts, times, a file that is appended to.
redis-server --port 0 --unixsocket $PWD/s --daemonize no --save '' --logfile $PWD/log --appendonly yes --dir $PWD & P=$!
for i in $(seq 100); do [ -S s ] && break; sleep 0.05; done
c() { redis-cli -s $PWD/s "$@"; }
c ping; c set k v; c get k; c incr n; c lpush l 1 2 3; c lrange l 0 -1; c eval 'return redis.call("incr","n") * 2' 0; c expire k 1; sleep 1.2; c get k; for i in 1 2 3; do c incrby n 5; done; c info server | grep -c redis_version; c bgrewriteaof; sleep 0.3; c shutdown; wait $P; echo rc $?; tail -c 30 log | wc -l; ls appendonlydir 2>/dev/null | wc -l
