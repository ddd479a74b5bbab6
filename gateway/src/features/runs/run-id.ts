/** Names of what belongs to a task. PURE. */

/** The id of the run that does a task. */
export const runIdOf = ({ id }: { readonly id: string }): string => `task-${id}`;
/** The key of the notification about a question of a task that an agent was given. */
export const questionKey = (taskId: string, code: string): string => `delegation/${taskId}/${code}`;
