/**
 * The package `@vladfrangu/async_event_emitter`, as discord.js's packages use it, by the runtime's own emitter (an alias of the bundler
 * puts it in place). The original brings a copy of Node's inspector along, a fifth of the whole Worker.
 */
export { EventEmitter as AsyncEventEmitter } from "node:events";
