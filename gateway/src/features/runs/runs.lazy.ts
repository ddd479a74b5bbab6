/** The part of tasks that is loaded with the first one. */
export { TaskRuns } from "./task-runs.ts";
export { Tasks } from "./tasks.ts";
