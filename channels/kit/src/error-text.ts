/** Errors as rows and logs have them. PURE. */

/** The error's message, shortened. Never a message text or a secret. */
export const errorText = (error: unknown): string => (error instanceof Error ? error.message : String(error)).slice(0, 300);
