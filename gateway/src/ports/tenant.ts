/** Whose rows they are: of memory, jobs and what else may one day serve more than one person. */

/** The only tenant of a gateway that serves one person. Stored, so it never changes. */
export const TENANT_ID = "default";
