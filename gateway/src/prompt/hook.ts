/** The line with which a run that a hook has caused begins. PURE. */

/** `job`: the job of the owner's that the hook runs, with what else its line says. */
export const hookLine = (hook: string, job?: { readonly name: string; readonly late: string }): string =>
  job === undefined
    ? `[The hook "${hook}" was called by another service. No person has written this just now.]`
    : `[The job "${job.name}" runs now${job.late}, because the hook "${hook}" was called by another service. No person has written this just now.]`;

/** Whether a message may hold what a hook has brought. */
export const isOfHook = (text: string): boolean => /^\[The (?:hook|job) "[^\n]*" was called by another service\. /.test(text);
