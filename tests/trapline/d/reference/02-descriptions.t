# Probe descriptions, and what -l shows of them (sections 2, 17.7)

$ -x errtags -n 'a:b:c:d:e'
!dtrace: invalid probe specifier ...: [D_PDESC_INVAL] probe description a:b:c:d:e has too many fields (provider:module:function:name)
= 1

$ -x errtags -f 'fbt:kernel:malloc:x'
!dtrace: invalid probe specifier ...: [D_PDESC_INVAL] probe description fbt:kernel:malloc:x has too many fields (provider:module:function)
= 1

$ -x errtags -m 'fbt:kernel:malloc'
!dtrace: invalid probe specifier ...: [D_PDESC_INVAL] probe description fbt:kernel:malloc has too many fields (provider:module)
= 1

$ -x errtags -P 'fbt:kernel'
!dtrace: invalid probe specifier ...: [D_PDESC_INVAL] probe description fbt:kernel has too many fields (provider)
= 1

$ -l -f malloc
|   ID   PROVIDER            MODULE                          FUNCTION NAME
|   19        fbt            kernel                            malloc entry
|   20        fbt            kernel                            malloc return

$ -l -m kernel
|   ID   PROVIDER            MODULE                          FUNCTION NAME
|   17        fbt            kernel                          sys_read entry
|   18        fbt            kernel                          sys_read return
|   19        fbt            kernel                            malloc entry
|   20        fbt            kernel                            malloc return
|   21        fbt            kernel                             namei entry
|   22        fbt            kernel                             namei return
|   23        fbt            kernel                        dofileread entry
|   24        fbt            kernel                        dofileread return
|   25        fbt            kernel                               odd entry
|   26        fbt            kernel                               odd return

$ -l -m fbt:kernel -f kernel:malloc
|   ID   PROVIDER            MODULE                          FUNCTION NAME
|   17        fbt            kernel                          sys_read entry
|   18        fbt            kernel                          sys_read return
|   19        fbt            kernel                            malloc entry
|   20        fbt            kernel                            malloc return
|   21        fbt            kernel                             namei entry
|   22        fbt            kernel                             namei return
|   23        fbt            kernel                        dofileread entry
|   24        fbt            kernel                        dofileread return
|   25        fbt            kernel                               odd entry
|   26        fbt            kernel                               odd return
|   19        fbt            kernel                            malloc entry
|   20        fbt            kernel                            malloc return

$ -l -P fbt
|   ID   PROVIDER            MODULE                          FUNCTION NAME
|   17        fbt            kernel                          sys_read entry
|   18        fbt            kernel                          sys_read return
|   19        fbt            kernel                            malloc entry
|   20        fbt            kernel                            malloc return
|   21        fbt            kernel                             namei entry
|   22        fbt            kernel                             namei return
|   23        fbt            kernel                        dofileread entry
|   24        fbt            kernel                        dofileread return
|   25        fbt            kernel                               odd entry
|   26        fbt            kernel                               odd return

$ -l -n entry
|   ID   PROVIDER            MODULE                          FUNCTION NAME
|   17        fbt            kernel                          sys_read entry
|   19        fbt            kernel                            malloc entry
|   21        fbt            kernel                             namei entry
|   23        fbt            kernel                        dofileread entry
|   25        fbt            kernel                               odd entry

$ -l -n malloc:
|   ID   PROVIDER            MODULE                          FUNCTION NAME
|   19        fbt            kernel                            malloc entry
|   20        fbt            kernel                            malloc return

$ -l -i 3
|   ID   PROVIDER            MODULE                          FUNCTION NAME
|    3     dtrace                                                     ERROR

$ -l -i 3,1
|   ID   PROVIDER            MODULE                          FUNCTION NAME
|    3     dtrace                                                     ERROR
|    1     dtrace                                                     BEGIN

$ -l -n 3
|   ID   PROVIDER            MODULE                          FUNCTION NAME
|    3     dtrace                                                     ERROR

$ -x errtags -f 3
!dtrace: invalid probe specifier ...: [D_PDESC_INVAL] -f 3: probe ids are given with -i
= 1

$ -x errtags -i 99
!dtrace: invalid probe specifier ...: [D_PDESC_INVAL] invalid probe identifier 99
= 1

$ -x errtags -i BEGIN
!dtrace: invalid probe specifier ...: [D_PDESC_INVAL] -i BEGIN: a probe id is a number
= 1

$ -l -n nosuch
|   ID   PROVIDER            MODULE                          FUNCTION NAME
!dtrace: failed to match :::nosuch: No probe matches description

$ -l -n 'fbt::m*:'
|   ID   PROVIDER            MODULE                          FUNCTION NAME
|   19        fbt            kernel                            malloc entry
|   20        fbt            kernel                            malloc return

$ -l -n 'fbt::[mn]*:entry'
|   ID   PROVIDER            MODULE                          FUNCTION NAME
|   19        fbt            kernel                            malloc entry
|   21        fbt            kernel                             namei entry

$ -l -n 'fbt::[!mn]*:entry'
|   ID   PROVIDER            MODULE                          FUNCTION NAME
|   17        fbt            kernel                          sys_read entry
|   23        fbt            kernel                        dofileread entry
|   25        fbt            kernel                               odd entry

$ -l -n 'fbt::[m-s]a?l??:entry'
|   ID   PROVIDER            MODULE                          FUNCTION NAME
|   19        fbt            kernel                            malloc entry

$ -l -n 'fbt::mall\oc:entry'
|   ID   PROVIDER            MODULE                          FUNCTION NAME
|   19        fbt            kernel                            malloc entry

$ -l -n ':::'
|   ID   PROVIDER            MODULE                          FUNCTION NAME
|   17        fbt            kernel                          sys_read entry
|   18        fbt            kernel                          sys_read return
|   19        fbt            kernel                            malloc entry
|   20        fbt            kernel                            malloc return
|   21        fbt            kernel                             namei entry
|   22        fbt            kernel                             namei return
|   23        fbt            kernel                        dofileread entry
|   24        fbt            kernel                        dofileread return
|   25        fbt            kernel                               odd entry
|   26        fbt            kernel                               odd return

$ -l -n ''
!dtrace: invalid probe specifier : the program is empty: it has no clause and no declaration
= 1

$ -l -n '*'
|   ID   PROVIDER            MODULE                          FUNCTION NAME
|    1     dtrace                                                     BEGIN
|    2     dtrace                                                     END
|    3     dtrace                                                     ERROR
|    4    profile                                                     profile-97
|    5    profile                                                     profile-199
|    6    profile                                                     profile-499
|    7    profile                                                     profile-997
|    8    profile                                                     profile-1999
|    9    profile                                                     profile-4001
|   10    profile                                                     profile-4999
|   11    profile                                                     tick-1
|   12    profile                                                     tick-10
|   13    profile                                                     tick-100
|   14    profile                                                     tick-500
|   15    profile                                                     tick-1000
|   16    profile                                                     tick-5000
|   17        fbt            kernel                          sys_read entry
|   18        fbt            kernel                          sys_read return
|   19        fbt            kernel                            malloc entry
|   20        fbt            kernel                            malloc return
|   21        fbt            kernel                             namei entry
|   22        fbt            kernel                             namei return
|   23        fbt            kernel                        dofileread entry
|   24        fbt            kernel                        dofileread return
|   25        fbt            kernel                               odd entry
|   26        fbt            kernel                               odd return

$ -l
|   ID   PROVIDER            MODULE                          FUNCTION NAME
|    1     dtrace                                                     BEGIN
|    2     dtrace                                                     END
|    3     dtrace                                                     ERROR
|    4    profile                                                     profile-97
|    5    profile                                                     profile-199
|    6    profile                                                     profile-499
|    7    profile                                                     profile-997
|    8    profile                                                     profile-1999
|    9    profile                                                     profile-4001
|   10    profile                                                     profile-4999
|   11    profile                                                     tick-1
|   12    profile                                                     tick-10
|   13    profile                                                     tick-100
|   14    profile                                                     tick-500
|   15    profile                                                     tick-1000
|   16    profile                                                     tick-5000
|   17        fbt            kernel                          sys_read entry
|   18        fbt            kernel                          sys_read return
|   19        fbt            kernel                            malloc entry
|   20        fbt            kernel                            malloc return
|   21        fbt            kernel                             namei entry
|   22        fbt            kernel                             namei return
|   23        fbt            kernel                        dofileread entry
|   24        fbt            kernel                        dofileread return
|   25        fbt            kernel                               odd entry
|   26        fbt            kernel                               odd return

$ -lv -n BEGIN
|   ID   PROVIDER            MODULE                          FUNCTION NAME
|    1     dtrace                                                     BEGIN
|
|	Probe Description Attributes
|		Identifier Names: Stable
|		Data Semantics:   Stable
|		Dependency Class: Common
|
|	Argument Attributes
|		Identifier Names: Stable
|		Data Semantics:   Stable
|		Dependency Class: Common
|
|	Argument Types
|		None
|

$ -lv -f malloc
|   ID   PROVIDER            MODULE                          FUNCTION NAME
|   19        fbt            kernel                            malloc entry
|
|	Probe Description Attributes
|		Identifier Names: Private
|		Data Semantics:   Private
|		Dependency Class: Unknown
|
|	Argument Attributes
|		Identifier Names: Private
|		Data Semantics:   Private
|		Dependency Class: ISA
|
|	Argument Types
|		args[0]: unsigned long
|		args[1]: void *
|		args[2]: int
|
|   20        fbt            kernel                            malloc return
|
|	Probe Description Attributes
|		Identifier Names: Private
|		Data Semantics:   Private
|		Dependency Class: Unknown
|
|	Argument Attributes
|		Identifier Names: Private
|		Data Semantics:   Private
|		Dependency Class: ISA
|
|	Argument Types
|		args[0]: int
|		args[1]: int
|

$ -lv -n 'BEGIN'
|   ID   PROVIDER            MODULE                          FUNCTION NAME
|    1     dtrace                                                     BEGIN
|
|	Probe Description Attributes
|		Identifier Names: Stable
|		Data Semantics:   Stable
|		Dependency Class: Common
|
|	Argument Attributes
|		Identifier Names: Stable
|		Data Semantics:   Stable
|		Dependency Class: Common
|
|	Argument Types
|		None
|

$ -Z -n 'nosuch' -n 'BEGIN { exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|

$ -Z -n 'nosuch'
|

$ -n 'BEGIN' -n 'nosuch'
!dtrace: invalid probe specifier nosuch: probe description :::nosuch does not match any probes
= 1

$ -x errtags -n 'nosuch { }'
!dtrace: invalid probe specifier ...: [D_PDESC_ZERO] probe description :::nosuch does not match any probes
= 1

$ -x errtags -n 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:::'
!dtrace: invalid probe specifier ...: [D_PDESC_INVAL] the provider of a probe has at most 63 characters
= 1

$ -x errtags -n '$foo:::entry'
!dtrace: invalid probe specifier ...: [D_PDESC_INVAL] '$foo' is not a macro: a description may hold $N or $target
= 1

$ -x errtags -n 'fbt:::entry:'
!dtrace: invalid probe specifier ...: [D_PDESC_INVAL] probe description fbt:::entry: has too many fields (provider:module:function:name)
= 1
