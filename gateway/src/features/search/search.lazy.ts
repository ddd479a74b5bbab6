/** The part of search that is loaded with an agent's index. */
import type { Database } from "../../platform/sql.ts";
import { IndexStore } from "./index-store.ts";
import wordPlaces from "./word-places.wasm";

export { SearchService } from "./service.ts";
export const indexStore = (storage: Database): IndexStore => new IndexStore(storage, wordPlaces);
