using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "floor", worker = .floor),
    (name = "state", disk = (writable = true)),
    (name = "internet", network = (allow = ["public", "private"], tlsOptions = (trustBrowserCas = true)))
  ],
  sockets = [ (name = "http", http = (), service = "floor") ]
);

const floor :Workerd.Worker = (
  modules = [ (name = "worker.js", esModule = embed "worker.js") ],
  compatibilityDate = "2026-11-01",
  durableObjectNamespaces = [
    (className = "FloorGateway", uniqueKey = "FloorGateway", enableSql = true),
    (className = "FloorSession", uniqueKey = "FloorSession", enableSql = true)
  ],
  durableObjectStorage = (localDisk = "state"),
  bindings = [
    (name = "GATEWAY", durableObjectNamespace = "FloorGateway"),
    (name = "SESSION", durableObjectNamespace = "FloorSession"),
    (name = "MODEL_URL", fromEnvironment = "MODEL_URL")
  ]
);
