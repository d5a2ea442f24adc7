# Recipes at the same time, and a make in a make.
cat > Makefile <<'E'
all: a b c d
a b c d: ; @sleep 0.01; echo made $@ > $@
clean: ; rm -f a b c d
sub: ; @$(MAKE) --no-print-directory -C . clean
E
make -j4 && cat a b c d && make && make sub && ls; make nosuch; echo rc $?
