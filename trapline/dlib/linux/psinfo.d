/* Processes and threads as in ps(1): curpsinfo and curlwpsinfo, made from the built-in variables. */

#pragma D depends_on library pstypes.d

translator psinfo_t < pid_t P > {
	pr_pid = P;
	pr_ppid = ppid;
	pr_uid = uid;
	pr_euid = uid;
	pr_gid = gid;
	pr_egid = gid;
	pr_fname = execname;
	pr_psargs = execargs;
	pr_arglen = strlen(execargs);
	pr_dmodel = sizeof (long) == 8 ? 2 : 1;
};

translator lwpsinfo_t < id_t T > {
	pr_lwpid = T;
	pr_sname = 'O';
	pr_cpu = cpu;
	pr_onpro = cpu;
	pr_name = execname;
	pr_clname = "TS";
};

inline psinfo_t *curpsinfo = xlate <psinfo_t *> (pid);
inline lwpsinfo_t *curlwpsinfo = xlate <lwpsinfo_t *> (tid);
inline string threadname = execname;
