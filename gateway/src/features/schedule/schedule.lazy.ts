/** What works on jobs, with the library for cron expressions. A file of its own, which is loaded when the first job is used. */
export { cronLines } from "../../schedule/cron-lines.ts";
export { Beats } from "./beats.ts";
export { whatComes } from "./coming.ts";
export { Jobs } from "./jobs.ts";
export { Runner } from "./runner.ts";
export { shownRun } from "./shown.ts";
