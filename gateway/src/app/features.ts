/**
 * Lists the features of this gateway in order: a feature may use the ports of the features before it. No other file knows all of them;
 * a new capability is a folder and one line here (features/README.md).
 */
import type { ChannelService } from "../../../protocol/gen/services.ts";
import { agentsFeature } from "../features/agents/index.ts";
import { approvalsFeature } from "../features/approvals/index.ts";
import { auditFeature } from "../features/audit/index.ts";
import { changesFeature } from "../features/changes/index.ts";
import { channelsFeature } from "../features/channels/index.ts";
import { configFeature } from "../features/config/index.ts";
import { eventsFeature } from "../features/events/index.ts";
import { invitesFeature } from "../features/invites/index.ts";
import { hooksFeature } from "../features/hooks/index.ts";
import { jobsFeature } from "../features/jobs/index.ts";
import { longTermMemoryFeature } from "../features/memory/index.ts";
import { mediaFeature } from "../features/media/index.ts";
import { modelsFeature } from "../features/models/index.ts";
import { movesFeature } from "../features/moves/index.ts";
import { nodesFeature } from "../features/nodes/index.ts";
import { notificationsFeature, notifyFeature } from "../features/notify/index.ts";
import { packsFeature } from "../features/packs/index.ts";
import { runsFeature } from "../features/runs/index.ts";
import { scheduleFeature } from "../features/schedule/index.ts";
import { searchFeature } from "../features/search/index.ts";
import { sessionsFeature } from "../features/sessions/index.ts";
import { skillsFeature } from "../features/skills/index.ts";
import { spendFeature } from "../features/spend/index.ts";
import { telemetryFeature } from "../features/telemetry/index.ts";
import { tokensFeature } from "../features/tokens/index.ts";
import { transfersFeature } from "../features/transfers/index.ts";
import { undoFeature } from "../features/undo/index.ts";
import { workspaceFeature } from "../features/workspace/index.ts";
import type { Topics } from "../events/topics.ts";
import type { Admission } from "../kernel/admission.ts";
import { FeatureList } from "../kernel/feature.ts";
import type { KernelPorts } from "../kernel/ports.ts";
import type { EmbeddingAi } from "../ports/embeddings.ts";
import type { EventQueue } from "../ports/events.ts";
import type { GatewayPort } from "../ports/gateway.ts";
import type { IndexSpace, JobPort } from "../ports/jobs.ts";
import type { ModelClient } from "../ports/model.ts";
import type { MovablePort, MovedState, ObjectKind } from "../ports/moving.ts";
import type { NativeTools } from "../ports/native-tools.ts";
import type { PacksPort } from "../ports/packs.ts";
import type { SearchPort } from "../ports/search.ts";
import type { SessionPort } from "../ports/session.ts";
import type { RestoredCopy } from "../ports/sessions.ts";
import type { VectorBinding } from "../ports/vector-index.ts";
import type { WebPort } from "../ports/web.ts";
import type { Bucket } from "../storage/bucket.ts";
import type { RowDatabase } from "../storage/rows.ts";
import type { WrittenFiles } from "../storage/telling-bucket.ts";

/** The ports that exist before any feature: the kernel's, and those to other objects and services. */
export interface BasePorts extends KernelPorts, PacksPort {
  readonly admission: Pick<Admission, "grant" | "grantTask">;
  /** Tells `writtenFiles` of what it writes. */
  readonly bucket: Bucket;
  readonly writtenFiles: WrittenFiles;
  /** Undefined: the deployment has no database for rows. */
  readonly rowDatabase: RowDatabase | undefined;
  /** Undefined: the deployment has no index of vectors beside it. */
  readonly vectorIndex: VectorBinding | undefined;
  /** The object of a session, by its canonical key. */
  readonly session: (key: string) => SessionPort;
  /** An agent's search index. */
  readonly searchIndex: (agentId: string) => SearchPort;
  /** The object of a job, by its id. */
  readonly job: (id: string) => JobPort;
  readonly jobsIndex: () => IndexSpace;
  /** The queue for events with this name; the core's queue when the deployment has none of this name. Undefined: it has no queue at all. */
  readonly eventQueue: (name?: string) => EventQueue | undefined;
  /** The topics of all features and packs. */
  readonly topics: Topics;
  /** The Worker of a channel; undefined: none is bound. */
  readonly channel: (name: string) => ChannelService | undefined;
  readonly channelNames: () => readonly string[];
  readonly model: ModelClient;
  readonly native: NativeTools;
  /** The gateway as native tools see it. */
  readonly port: GatewayPort;
  readonly web: WebPort["web"];
  /** To services that turn texts into vectors. */
  readonly embedding: { readonly ai: EmbeddingAi | undefined; readonly fetch: (input: string, init: RequestInit) => Promise<Response> };
  /** To the owner's collector of traces. */
  readonly collector: { readonly version: string; readonly fetch: (url: string, init: RequestInit) => Promise<Response> };
  readonly after: (ms: number, work: () => void) => void;
  /** Bytes of a file are about to pass: the engine is to collect what they leave (`gc-pressure.ts`). Does nothing on Cloudflare. */
  readonly addGcPressure: (bytes: number) => void;
  readonly restoredCopy: RestoredCopy | undefined;
  /** Another object, for a move. */
  readonly movable: (kind: ObjectKind, key: string) => MovablePort;
  readonly movedState: () => Promise<MovedState>;
  /** The object begins again with what is stored. */
  readonly restart: () => void;
  /** The version of the program. */
  readonly version: string;
}

export const FEATURES = FeatureList.over<BasePorts>()
  .add(sessionsFeature)
  .add(packsFeature)
  .add(notifyFeature)
  .add(approvalsFeature)
  .add(changesFeature)
  .add(nodesFeature)
  .add(channelsFeature)
  .add(skillsFeature)
  .add(workspaceFeature)
  .add(undoFeature)
  .add(transfersFeature)
  .add(searchFeature)
  .add(mediaFeature)
  .add(configFeature)
  .add(spendFeature)
  .add(modelsFeature)
  .add(scheduleFeature)
  .add(hooksFeature)
  .add(agentsFeature)
  .add(longTermMemoryFeature)
  .add(runsFeature)
  .add(jobsFeature)
  .add(eventsFeature)
  .add(movesFeature)
  .add(tokensFeature)
  .add(invitesFeature)
  .add(auditFeature)
  .add(telemetryFeature)
  .add(notificationsFeature);
