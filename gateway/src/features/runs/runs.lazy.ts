/** The part of tasks that is loaded with the first one. */
export { Delegations } from "./delegations.ts";
export { TaskRuns } from "./task-runs.ts";
export { Tasks } from "./tasks.ts";
export { TaskWatches } from "./watches.ts";
