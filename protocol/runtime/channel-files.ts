/**
 * Files between channels and the gateway: bytes beside the checked parameters, which the generated `GatewayService` cannot have. Channels
 * have no access to the storage of their own. Types only.
 */
import type { ChannelFileRead, ChannelMediaSlot, GatewayServiceMediaParams } from "../gen/types.ts";

export interface GatewayFiles {
  /** Stores a file of a message. An empty answer: the gateway does not want it. At most the limit `mediaBytes`. */
  storeFile(params: GatewayServiceMediaParams, bytes: Uint8Array): Promise<ChannelMediaSlot>;
  /** Reads a file of a delivery that was given to this channel. Null: it is no longer stored. */
  readFile(params: ChannelFileRead): Promise<OutboundBytes | null>;
}
export interface OutboundBytes {
  readonly sizeBytes: number;
  /** Absent: the file is larger than `maxBytes`. */
  readonly bytes?: Uint8Array;
}
