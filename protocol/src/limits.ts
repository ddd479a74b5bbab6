/** Every limit that the wire, the gateway, the nodes and the tests share. No limit of these is defined elsewhere. */
import { limit } from "./dsl.ts";

limit("protocolVersion", 1, "The protocol version that this contract describes.");
limit("frameBytes", 1048576, "Largest text frame, in UTF-8 bytes.");
limit("frameDepth", 96, "Deepest nesting of arrays and objects in a frame.");
limit("transferChunkBytes", 262144, "Largest chunk of a binary frame, without its 4-byte transfer id.");
limit("transferChunkLeastBytes", 16384, "Smallest chunk of a transfer, except its last one: many small chunks would starve other work.");
limit("transferWindowBytes", 4194304, "Bytes of a transfer that are on the way and not acknowledged.");
limit("transferPartBytes", 2097152, "Bytes of a transfer that are acknowledged together.");
limit(
  "transferStoredBytes",
  8388608,
  "Bytes of a file on its way into the workspace that are one object of the bucket. A file of transferBytes has fewer than 1,000 of them.",
);
limit("transferBytes", 5000000000, "Largest file of a transfer that begins or ends in the workspace.");
limit("transfers", 4, "Transfers at once; more are refused.");
limit(
  "transferIdleMs",
  300000,
  "How long a transfer waits without progress, for example for a machine that is not connected. Then it fails.",
);
limit(
  "transferAliveMs",
  3600000,
  "How long after its last byte a transfer goes on while an end only reports that it is alive, for example because it reads a file.",
);
limit(
  "strayChunksPerMinute",
  1000,
  "Chunks a minute from one connection that belong to no transfer. After more, the connection is closed.",
);
limit("transferKeptMs", 86400000, "How long an ended transfer is listed.");
limit("unauthFrameBytes", 4096, "Largest frame of a client or channel before hello-ok.");
limit("unauthNodeFrameBytes", 262144, "Largest `connect` frame of a node, which lists its tools.");
limit("unauthSockets", 64, "Sockets without hello-ok at once; more are refused with 503.");
limit("unauthSocketsPerAddress", 8, "Sockets without hello-ok at once from one address.");
limit("connectTimeoutMs", 10000, "Time from opening a socket to hello-ok; after it the socket is closed.");
limit("authSockets", 256, "Authenticated sockets at once.");
limit("authFailuresPerMinute", 10, "Failed authentications a minute from one address; more are answered 429.");
limit("clientFramesPerMinute", 600, "Requests a minute from one client connection.");
limit("nodeFramesPerSecond", 200, "Requests a second from one node connection.");
limit("pingIntervalMs", 20000, "Both ends of a link send something at least this often; two misses close it.");
limit("reconnectMinMs", 500, "Shortest wait before a reconnect (full jitter).");
limit("reconnectMaxMs", 30000, "Longest wait before a reconnect.");
limit("messageBytes", 262144, "Largest text of one chat message.");
limit("queueMessages", 200, "Queued messages of one session; more are refused before they are accepted.");
limit("queueBytes", 4194304, "Bytes of queued messages of one session.");
limit("rowBytes", 1048576, "Largest row that the gateway stores.");
limit("attachmentBytes", 16384, "Largest state kept with a hibernating socket.");
limit("eventRing", 2000, "Least number of events of a session that can be replayed.");
limit("eventRingMs", 86400000, "How long events of a session can be replayed.");
limit("dedupeMs", 2592000000, "How long a message id is kept for the detection of duplicates.");
limit("leaseMs", 30000, "Lease of a run or a delivery; after it expires, another worker may take over.");
limit("stepsPerRun", 50, "Model calls in one run, by default.");
limit("runMs", 1800000, "Time of one run, by default.");
limit("noProgressMs", 300000, "A run without progress for this long is ended with an error.");
limit("recoveryAttempts", 10, "Restarts of one model step before a run is ended with an error.");
limit("modelAttempts", 4, "Tries of one model call at one provider.");
limit("modelBackoffMs", 1000, "First wait between tries; doubles, with 25 % jitter.");
limit("modelRetryAfterMaxMs", 60000, "A longer retry-after means that the provider is unavailable.");
limit("modelFirstByteMs", 60000, "Time to a model's first byte.");
limit("modelIdleMs", 45000, "Longest pause in a model's stream.");
limit("toolCallsPerStep", 32, "Tool calls in one model answer; further ones get an error result.");
limit("toolResultChars", 50000, "A longer tool result is cut in the middle for the model; the full text stays retrievable.");
limit("toolInlineBytes", 262144, "A larger tool result is stored as a file, and the message refers to it.");
limit("toolResultBytes", 8388608, "Largest result a node keeps for one call.");
limit("nodeResultBytes", 12582912, "Largest frame of a tool result with images; its other content fits an ordinary frame.");
limit("nodeGraceMs", 10000, "How long a started call waits for a disconnected node before its outcome is unknown.");
limit("nodeConcurrentCalls", 8, "Calls that run at once on a node.");
limit("nodeQueuedCalls", 32, "Queued calls of a node.");
limit("nodeTools", 64, "Tools that one node may offer.");
limit("ledgerMs", 86400000, "How long a node keeps a released call in its ledger.");
limit("ledgerUnreleasedMs", 604800000, "How long a node keeps an unacknowledged result.");
limit("ledgerBytes", 268435456, "Bytes of undelivered results that a node keeps.");
limit("bashOutputChars", 200000, "Output of a command that is kept: the last characters.");
limit("bashTimeoutMs", 300000, "Default time limit of a command.");
limit("killGraceMs", 250, "Time between TERM and KILL.");
limit("processRetentionMs", 1800000, "How long an ended background process can be queried.");
limit("imageBytes", 10485760, "Largest image that a tool may return.");
limit("webhookBytes", 1048576, "Largest body of a request to a channel or to a hook.");
limit("webhooksAtOnce", 32, "Requests to one channel, or to one hook, at once; more are answered 429.");
limit("webhookBodyMs", 5000, "Time for the body of a request to a channel or to a hook to arrive.");
limit("taskBytes", 262144, "Largest body of `POST /run`.");
limit("taskBodiesAtOnce", 64, "Requests to `POST /run` that arrive at once, and requests to `POST /jobs`; more are answered 429.");
limit("tasksAtOnce", 32, "Requests to `POST /run` at once; more are answered 429.");
limit("taskDays", 7, "Days for which a finished task and its conversation are kept.");
limit("jobsWaiting", 4096, "Jobs of agents that wait for their turn; one more is answered 429.");
limit("jobsAwaiting", 64, "Jobs that wait for the owner's word; while there are as many, no job begins.");
limit("jobKeyMs", 86400000, "How long an Idempotency-Key names the same job.");
limit("jobDays", 7, "Days for which an ended job and its report are kept.");
limit("webhookMs", 30000, "Time for a channel to answer a request.");
limit(
  "hookBytesAtOnce",
  33554432,
  "Bytes of bodies of requests to hooks that are held at once, of all hooks together; more are answered 429.",
);
limit("hooks", 50, "Hooks that exist at once.");
limit("hookPerMinute", 60, "Deliveries a minute that one hook accepts; more are answered 429.");
limit("hookQueue", 100, "Accepted deliveries of one hook that have not begun; more are answered 503.");
limit("hookDeliveriesKept", 10000, "Ids of accepted deliveries that are kept for each hook, whatever their age.");
limit("hookToleranceMs", 300000, "A signed time may differ from the gateway's time by this much.");
limit("hookTextChars", 32000, "Longest text that a template makes of a delivery; the rest is cut, with a note.");
limit("mediaBytes", 26214400, "Largest media object.");
limit("injectedFileBytes", 65536, "A larger workspace file is cut at this size in the prompt, with a note.");
limit("injectedTotalBytes", 262144, "All workspace files in the prompt together.");
limit("workspaceFileBytes", 1048576, "Largest workspace file that the wire or a native tool may write.");
limit("attachments", 16, "Files of one message.");
limit("mediaCacheBytes", 52428800, "Media kept in memory between model calls.");
limit("inlineDocumentBytes", 65536, "A text attachment is shown to the model up to this size.");
limit("documentPages", 200, "Pages of a PDF that are read.");
limit("documentExpandedBytes", 67108864, "Largest content of a document when it is unpacked.");
limit("documentTextChars", 1000000, "Text of a document that is kept, in UTF-16 units.");
limit("documentFiles", 2000, "Files in a Word, Excel or PowerPoint file.");
limit("sheetColumns", 1000, "Columns of a sheet that are read.");
limit("mailLines", 500000, "Lines of an e-mail file; one with 26 MB of attachments has 350,000.");
limit("mailParts", 2000, "Lines of an e-mail file that may begin a part, because they begin with `--`.");
limit("mailTextBytes", 2097152, "Text of an e-mail file: all lines that are not base64, as those of attachments are.");
limit("documentSteps", 10000000, "Work for one PDF: operators, characters, and 200 for each object that is looked up.");
limit("imagePixels", 25000000, "Largest image that is scaled for a model on the owner's machine.");
limit("imagePixelsOnEdge", 3000000, "Largest image that is scaled for a model on Cloudflare, where an object has 128 MB.");
limit("transcriptionMs", 60000, "Time limit for transcribing one recording.");
limit("quarantineEntries", 100, "Memories of an agent that wait for the owner. A full quarantine takes no more.");
limit("quarantineBytes", 1048576, "All memories of an agent that wait for the owner.");
limit("memoryBytes", 8192, "Largest text of one long-term memory.");
limit("memoryMetadataBytes", 4096, "Metadata of one long-term memory, as JSON.");
limit("embeddingMs", 30000, "Time limit for turning texts of memories into vectors, for each request.");
limit("embeddingQuestionMs", 3000, "How long a recall waits for the vector of its question.");
limit("memories", 20000, "Long-term memories of one agent.");
limit("memoriesIndexed", 100000, "Long-term memories of one agent where a vector index is bound.");
limit("valueDepth", 64, "Deepest nesting of a value from outside: a task, an event's payload, the answer of a pack's service.");
limit("eventPayloadBytes", 65536, "Payload of one domain event, as JSON.");
limit("eventsOpen", 10000, "Domain events that wait for their handler or for the owner; one more is refused.");
limit("eventWaitDays", 30, "Days for which a domain event waits for the owner's word; then it is rejected.");
limit("eventHandlerMs", 300000, "One attempt of a domain event's handler.");
limit("eventDays", 30, "Days for which an ended domain event is kept.");
limit("versionsKept", 30, "Earlier versions of a workspace file that are kept.");
limit("skillBytes", 131072, "Largest SKILL.md.");
limit("skillFiles", 256, "Files of one skill.");
limit("skillFilesBytes", 8388608, "All files of one skill together.");
limit("skillChunkBytes", 524288, "Largest chunk of an uploaded skill, before base64.");
limit("skillUploads", 4, "Skills that are being uploaded at once.");
limit("skillUploadMs", 600000, "How long an upload of a skill is kept after its last chunk.");
limit("skills", 100, "Skills of one agent, and of all agents together; further ones are left out, visibly.");
limit("agents", 256, "Agents.");
limit("summaryChars", 16000, "Longest summary that replaces older messages.");
limit("memoriesChars", 8000, "Longest text that one compaction or reset adds to a daily file.");
limit("summarizeMs", 120000, "Time limit of one model call for a summary or for memories.");
limit("compactionChunks", 64, "Model calls of one compaction; the remaining messages are archived without a summary, with a note.");
limit("pageBytes", 524288, "Bytes of one page of messages.");
limit("searchIndexMs", 10000, "Time that one search spends on indexing new text; the rest is indexed by the next search, with a note.");
limit("agentMessagesPerHour", 60, "Messages an hour that one of the owner's conversations sends to the others.");
limit("botMessagesInRow", 5, "Consecutive messages from programs that are answered in one conversation.");
limit("pairsWaiting", 100, "Pending pairing requests of one channel; a further one replaces the oldest.");
limit("pairNoticeMs", 3600000, "An unknown sender gets at most one notice in this time.");
limit("pairWaitMs", 604800000, "A pairing request that is not approved in this time is deleted with its messages.");
limit("pairMessages", 5, "Messages that are kept with a pairing request.");
limit("senderPerMinute", 20, "Messages a minute from one sender in one conversation of a channel; further ones are queued.");
limit("ownerPerMinute", 120, "The same for the owner.");
limit("sendPermitMs", 2000, "How long a send permit is valid: long enough for a message that a channel sends at once.");
limit("channelFiles", 256, "Files that one channel has stored for messages which have not come yet.");
limit("channelFilesBytes", 1073741824, "Bytes of these files.");
limit("channelFileMs", 604800000, "Such a file is deleted when no message has taken it in this time.");
limit("heldNoticeMs", 600000, "A sender whose messages are queued gets at most one notice in this time.");
limit("guestPerDay", 200, "Messages a day from one sender who is not the owner.");
limit("approvalMs", 1800000, "How long a question about a tool call waits for the owner; after it the call is denied.");
limit("approvalsOpen", 20, "Questions that one conversation has open at once; with more the run is ended.");
limit("approvalDenials", 3, "Denials of the same call in one run; then the run is ended.");
limit("approvalTextBytes", 4096, "Bytes of a call's arguments that a question shows; of the rest it shows size and sha256.");
limit("approvalWordChars", 500, "Longest word to the model with a denial.");
limit("nodeWaitMs", 86400000, "Longest time that a tool call waits for a machine that is not connected.");
limit("nodeWaitJobMs", 7200000, "How long a call of a job's task waits for its machine, unless the job says otherwise.");
limit("nodeWaitToldMs", 60000, "A call that waits longer for its machine is told to the owner.");
limit("nodeWaitSessions", 256, "Conversations that wait for machines at once; calls of a further one fail.");
limit("nodeMissingMs", 86400000, "A machine that a job needs and that is away for this long is reported to the owner.");
limit("nodesOffered", 4, "Machines that are not connected and whose tools a run is offered, the last seen ones first.");
limit("nodeOfferMs", 604800000, "The tools of a machine that was not seen for this long are not offered.");
limit("undoMs", 604800000, "How long changes of files can be undone.");
limit("undoAnswerBytes", 524288, "Bytes of the files that an undo lists; further ones are counted.");
limit("pageItems", 200, "Items of one page of a list.");
limit("auditDays", 90, "How long audit entries are kept.");
limit("auditVerifyEntries", 1000, "Entries that one audit.verify checks.");
limit("telemetryRuns", 1000, "Runs that wait for the export of their traces; of more the oldest are dropped and counted.");
limit("auditFileEntries", 5000, "Entries in one daily copy of the audit.");
limit("invites", 20, "Invitations that are open at once.");
limit("inviteMs", 600000, "How long an invitation is valid.");
limit("joinBytes", 4096, "Bytes of a request to join.");
limit("joinsAtOnce", 8, "Requests to join that are read at once.");
limit("joinFailuresPerMinute", 10, "Wrong secrets of one address in a minute; further ones are answered with a rate limit.");
limit("tokens", 200, "Tokens that exist at once.");
limit("configBytes", 262144, "Size of the configuration.");
