/** The part of search that is loaded with an agent's index. */
export { IndexStore } from "./index-store.ts";
export { SearchService } from "./service.ts";
