/** What works on jobs. A part of its own, which is loaded with the first job. */
export { JobIntake } from "./intake.ts";
export { JobObject } from "./job-object.ts";
export { JobQueue } from "./queue.ts";
