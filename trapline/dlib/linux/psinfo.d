/* Processes and threads as ps(1) knows them: curpsinfo and curlwpsinfo, of what the built-in variables tell. */

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
};

translator lwpsinfo_t < id_t T > {
	pr_lwpid = T;
	pr_sname = 'O';
};

inline psinfo_t *curpsinfo = xlate <psinfo_t *> (pid);
inline lwpsinfo_t *curlwpsinfo = xlate <lwpsinfo_t *> (tid);
inline string threadname = execname;
