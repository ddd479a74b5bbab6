/** The id of the run that does a task. PURE. */
export const runIdOf = ({ id }: { readonly id: string }): string => `task-${id}`;
