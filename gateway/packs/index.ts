/**
 * The packs that this program has, in one list that is closed before the first request. Each is off until the owner turns it on. A pack is
 * a folder and its line here.
 */
import { packList } from "../src/packs/pack.ts";
import { commerce } from "./commerce/index.ts";
import { success } from "./success/index.ts";

export const PACKS = packList([commerce, success]);
