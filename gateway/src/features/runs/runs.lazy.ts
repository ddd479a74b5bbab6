/** The part of tasks that is loaded with the first one. */
export { Tasks } from "./tasks.ts";
