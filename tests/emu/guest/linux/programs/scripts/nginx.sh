# A server with two workers, asked over a socket.
[ -s /etc/passwd ] || echo root:x:0:0::/:/bin/sh > /etc/passwd
[ -s /etc/group ] || echo root:x:0: > /etc/group
mkdir -p logs html tmp; echo hello nginx > html/index.html
cat > n.conf <<E
user root; daemon off; pid $PWD/pid; error_log $PWD/logs/e; worker_processes 2;
events { worker_connections 64; }
http { access_log $PWD/logs/a; client_body_temp_path $PWD/tmp; proxy_temp_path $PWD/tmp; fastcgi_temp_path $PWD/tmp; uwsgi_temp_path $PWD/tmp; scgi_temp_path $PWD/tmp; server { listen unix:$PWD/s; root $PWD/html; } }
E
nginx -e $PWD/logs/e0 -c $PWD/n.conf & P=$!
for i in $(seq 100); do [ -S s ] && break; sleep 0.05; done; sleep 0.2
perl -MIO::Socket::UNIX -e 'for my $p ("/", "/none") { my $s = IO::Socket::UNIX->new(Peer => shift || "s") or die "no: $!"; print $s "GET $p HTTP/1.0\r\n\r\n"; while (<$s>) { s/\r//; print unless /^(Date|Server|Last|ETag)/ } }'
kill -QUIT $P; wait $P; echo rc $?; cut -d'"' -f2,3 logs/a
