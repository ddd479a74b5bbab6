/** The reading of deletions as one part, which is loaded on first use. */
import { deleterIn, deletesMany, deletionOf } from "./deletions.ts";
import type { DeletionReader } from "./reading.ts";

export const reader: DeletionReader = { deletionOf, deletesMany, deleterIn };
