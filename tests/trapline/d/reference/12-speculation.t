# Speculation (section 12), and the rules of order around it

$ -x errtags -n 'BEGIN { discard(1); commit(0); speculate(0); exit(0); }'
!dtrace: invalid probe specifier ...: [D_SPEC_COMM] in action list: speculate( ) cannot follow commit( )
= 1

$ -x errtags -n 'BEGIN { commit(1); exit(0); }'
!dtrace: invalid probe specifier ...: [D_DREC_COMM] in action list: exit( ) records data and cannot follow commit( )
= 1

$ -x errtags -n 'BEGIN { commit(1); ustack(); }'
!dtrace: invalid probe specifier ...: [D_DREC_COMM] in action list: ustack( ) records data and cannot follow commit( )
= 1

$ -x errtags -n 'BEGIN { commit(1); setopt("quiet"); }'
!dtrace: invalid probe specifier ...: [D_DREC_COMM] in action list: setopt( ) records data and cannot follow commit( )
= 1

$ -x errtags -n 'BEGIN { speculate(1); freopen("a"); }'
!dtrace: invalid probe specifier ...: [D_ACT_SPEC] in action list: freopen( ) cannot follow speculate( )
= 1

$ -x errtags -n 'BEGIN { speculate(1); clear(@a); }'
!dtrace: invalid probe specifier ...: [D_IDENT_UNDEF] in action list: failed to resolve @a: no such aggregation
= 1

$ -x errtags -n 'BEGIN { x = 1; commit(1); discard(2); speculate(2); }'
!dtrace: invalid probe specifier ...: [D_SPEC_COMM] in action list: speculate( ) cannot follow commit( )
= 1

$ -x errtags -n 'BEGIN { speculate("a"); }'
!dtrace: invalid probe specifier ...: [D_PROTO_ARG] in action list: speculate( ) argument #1 is incompatible with its prototype: int wanted, string given
= 1

$ -x errtags -n 'BEGIN { speculate(this->s); }'
!dtrace: invalid probe specifier ...: [D_VAR_UNDEF] in action list: this->s has not been declared or assigned
= 1

$ -x errtags -n 'BEGIN { @a = count(); speculate(1); }'
!dtrace: failed to enable 'BEGIN ': DIF program content is invalid (an aggregating clause can neither speculate nor commit)
= 1

$ -x errtags -n 'BEGIN { @a = count(); commit(1); }'
!dtrace: failed to enable 'BEGIN ': DIF program content is invalid (an aggregating clause can neither speculate nor commit)
= 1

$ -x errtags -n 'BEGIN { commit(5); } BEGIN { discard(7); } BEGIN { speculate(8); trace(1); } BEGIN { exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|
!dtrace: error on enabled probe ID 1 (ID 1: dtrace:::BEGIN): illegal operation in action #1
!dtrace: error on enabled probe ID 2 (ID 1: dtrace:::BEGIN): illegal operation in action #1

$ -x errtags -n 'fbt::sys_read:entry { self->s = speculation(); } fbt::sys_read:entry /self->s/ { speculate(self->s); printf("read by %s", execname); } fbt::sys_read:return /self->s && arg1 < 100/ { discard(self->s); self->s = 0; } fbt::sys_read:return /self->s/ { commit(self->s); self->s = 0; } END { trace("end"); }'
|CPU     ID                    FUNCTION:NAME
|  0     17                   sys_read:entry read by sh
|  0     17                   sys_read:entry read by cat
|  0      2                             :END   end                              
|

$ -x errtags -n 'BEGIN { self->a = speculation(); self->b = speculation(); trace(self->a); trace(self->b); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN         1        0
|
!dtrace: 1 failed speculation (no speculative buffer available)

$ -x nspec=2 -n 'BEGIN { self->a = speculation(); self->b = speculation(); trace(self->a); trace(self->b); discard(self->a); this->x = speculation(); trace(this->x); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN         1        2        0
|
!dtrace: 1 failed speculation (available buffer(s) still busy)

$ -x errtags -n 'BEGIN { self->a = speculation(); self->b = speculation(); trace(self->a); trace(self->b); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN         1        0
|
!dtrace: 1 failed speculation (no speculative buffer available)

$ -x errtags -n 'BEGIN { commit(1); discard(1); } BEGIN { commit(2); } BEGIN { exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|
!dtrace: error on enabled probe ID 2 (ID 1: dtrace:::BEGIN): illegal operation in action #1

$ -x errtags -n 'BEGIN { @ = count(); commit(1); }'
!dtrace: failed to enable 'BEGIN ': DIF program content is invalid (an aggregating clause can neither speculate nor commit)
= 1
