/** What works on hooks. A part of its own, which is loaded with the first request. */
export { Door } from "./door.ts";
export { Hooks } from "./methods.ts";
