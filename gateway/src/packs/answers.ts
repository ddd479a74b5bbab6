/** What packs read the answers of services with. */
export { readBounded } from "../storage/read-bounded.ts";
