/** Every bound that the wire, the gateway, the nodes and the tests share. Each has one place: here. */
import { limit } from "./dsl.ts";

limit("protocolVersion", 1, "The protocol version that this contract describes.");
limit("frameBytes", 1048576, "Largest text frame, in UTF-8 bytes.");
limit("frameDepth", 32, "Deepest nesting of arrays and objects in a frame.");
limit("transferChunkBytes", 262144, "Largest payload of a binary frame, without its 4-byte transfer id.");
limit("unauthFrameBytes", 4096, "Largest frame of a client or channel before hello-ok.");
limit("unauthNodeFrameBytes", 262144, "Largest `connect` frame of a node, which lists its tools.");
limit("unauthSockets", 64, "Sockets without hello-ok at once; more are refused with 503.");
limit("unauthSocketsPerAddress", 8, "Sockets without hello-ok at once from one address.");
limit("connectTimeoutMs", 10000, "Time from opening a socket to hello-ok; then it is closed.");
limit("authSockets", 256, "Authenticated sockets at once.");
limit("authFailuresPerMinute", 10, "Failed authentications a minute from one address; more are answered 429.");
limit("clientFramesPerMinute", 600, "Requests a minute from one client connection.");
limit("nodeFramesPerSecond", 200, "Requests a second from one node connection.");
limit("pingIntervalMs", 20000, "Both ends of a link show life at least this often; two misses close it.");
limit("reconnectMinMs", 500, "Shortest wait before a reconnect (full jitter).");
limit("reconnectMaxMs", 30000, "Longest wait before a reconnect.");
limit("messageBytes", 262144, "Largest text of one chat message.");
limit("queueMessages", 200, "Messages that wait in one session; more are refused before they are accepted.");
limit("queueBytes", 4194304, "Bytes that wait in one session.");
limit("rowBytes", 1048576, "Largest row that the gateway stores.");
limit("attachmentBytes", 16384, "Largest state kept with a hibernating socket.");
limit("eventRing", 2000, "Events of a session that can at least be replayed.");
limit("eventRingMs", 86400000, "How long events of a session can be replayed.");
limit("dedupeMs", 2592000000, "How long a message id is remembered.");
limit("leaseMs", 30000, "Lease of a run or a delivery; when it runs out, someone else takes over.");
limit("stepsPerRun", 50, "Model calls in one run, by default.");
limit("runMs", 1800000, "Time of one run, by default.");
limit("noProgressMs", 300000, "A run that makes no progress for this long is ended, visibly.");
limit("recoveryAttempts", 10, "Restarts of one model step before a run is ended, visibly.");
limit("modelAttempts", 4, "Tries of one model call at one provider.");
limit("modelBackoffMs", 1000, "First wait between tries; doubles, with 25 % jitter.");
limit("modelRetryAfterMaxMs", 60000, "A longer retry-after counts as unavailable.");
limit("modelFirstByteMs", 60000, "Time to a model's first byte.");
limit("modelIdleMs", 45000, "Silence in a model's stream.");
limit("toolCallsPerStep", 32, "Tool calls in one model answer; further ones get an error result.");
limit("toolResultChars", 50000, "A longer tool result is cut in the middle for the model; the full text stays retrievable.");
limit("toolInlineBytes", 262144, "A larger tool result is kept as a file and referred to.");
limit("toolResultBytes", 8388608, "Largest result a node keeps for one call.");
limit(
  "nodeGraceMs",
  10000,
  "How long a started call waits for a node that dropped off, before the model is told that its outcome is unknown.",
);
limit("nodeConcurrentCalls", 8, "Calls that run at once on a node.");
limit("nodeQueuedCalls", 32, "Calls that wait on a node.");
limit("nodeTools", 64, "Tools that one node may offer.");
limit("ledgerMs", 86400000, "How long a node remembers a released call.");
limit("ledgerUnreleasedMs", 604800000, "How long a node keeps a result that nobody has acknowledged.");
limit("ledgerBytes", 268435456, "Bytes of undelivered results that a node keeps.");
limit("bashOutputChars", 200000, "Output of a command that is kept, its tail.");
limit("bashTimeoutMs", 300000, "Default time of a command.");
limit("killGraceMs", 250, "From TERM to KILL.");
limit("processRetentionMs", 1800000, "How long an ended background process can be asked about.");
limit("imageBytes", 10485760, "Largest image that a tool may return.");
limit("mediaBytes", 26214400, "Largest media object.");
limit("injectedFileBytes", 65536, "A workspace file is cut at this size in the prompt, with a note.");
limit("injectedTotalBytes", 262144, "All workspace files in the prompt together.");
limit("workspaceFileBytes", 1048576, "Largest workspace file written through the wire or a native tool.");
limit("pageItems", 200, "Items of one page of a list.");
limit("auditDays", 90, "How long audit entries are kept.");
limit("tokens", 200, "Tokens that exist at once.");
limit("configBytes", 262144, "Size of the configuration.");
