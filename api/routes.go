package api

import "net/http"

// operations are those of openapi.yaml, which describes them; a test compares the two.
var operations = []operation{
	{method: "GET", path: "/healthz", public: true, serve: (*Server).health},
	{method: "GET", path: "/v1/openapi.yaml", public: true, serve: (*Server).contract},
	{method: "GET", path: "/docs", public: true, serve: (*Server).docs},
	{method: "GET", path: "/docs.css", public: true, serve: (*Server).docsCSS},
	{method: "GET", path: "/{$}", public: true, serve: (*Server).page},

	{method: "GET", path: "/v1/contexts", limits: true, serve: (*Server).listContexts},
	{method: "POST", path: "/v1/contexts", limits: true, writes: true, serve: (*Server).createContext},
	{method: "GET", path: "/v1/contexts/{context}", serve: (*Server).getContext},
	{method: "PATCH", path: "/v1/contexts/{context}", writes: true, serve: (*Server).changeContext},
	{method: "DELETE", path: "/v1/contexts/{context}", writes: true, serve: (*Server).removeContext},
	{method: "POST", path: "/v1/contexts/{context}/commit", writes: true, large: true, serve: (*Server).commitChanges},
	{method: "GET", path: "/v1/contexts/{context}/log", serve: (*Server).listChanges},
	{method: "GET", path: "/v1/contexts/{context}/events", long: true, upgrades: true, serve: (*Server).followContext},
	{method: "GET", path: "/v1/events", limits: true, long: true, upgrades: true, serve: (*Server).followStore},

	{method: "GET", path: "/v1/contexts/{context}/branches", serve: (*Server).listBranches},
	{method: "POST", path: "/v1/contexts/{context}/branches", writes: true, serve: (*Server).createBranch},
	{method: "GET", path: branch, serve: (*Server).getBranch},
	{method: "DELETE", path: branch, writes: true, serve: (*Server).removeBranch},
	{method: "POST", path: branch + "/rename", writes: true, serve: (*Server).renameBranch},
	{method: "POST", path: branch + "/rewind", writes: true, serve: (*Server).rewindBranch},
	{method: "POST", path: branch + "/switch", writes: true, serve: (*Server).switchBranch},

	{method: "GET", path: messages, long: true, serve: (*Server).listMessages},
	{method: "POST", path: messages, writes: true, large: true, long: true, serve: (*Server).appendMessages},
	{method: "GET", path: messages + "/{id}", long: true, serve: (*Server).getMessage},
	{method: "PUT", path: messages + "/{id}", writes: true, large: true, long: true, serve: (*Server).replaceMessage},
	{method: "GET", path: messages + "/{id}/body", long: true, serve: (*Server).getBody},
	{method: "GET", path: messages + "/{id}/payloads", serve: (*Server).listPayloads},
	{method: "GET", path: messages + "/{id}/payloads/{sha256}", long: true, serve: (*Server).getPayload},
	{method: "GET", path: messages + "/{id}/references", serve: (*Server).listMessageReferences},
	{method: "GET", path: branch + "/references", long: true, serve: (*Server).listReferences},
	{method: "GET", path: messages + "/{id}/parts/{number}", long: true, serve: (*Server).getPart},
	{method: "GET", path: branch + "/parts", serve: (*Server).listParts},
	{method: "GET", path: branch + "/turns", serve: (*Server).listTurns},
	{method: "GET", path: branch + "/map", serve: (*Server).getMap},
	{method: "GET", path: "/v1/contexts/{context}/sizes", serve: (*Server).getSizes},
	{method: "GET", path: "/v1/blobs/{sha256}", long: true, serve: (*Server).getBlob},

	{method: "POST", path: "/v1/contexts/{context}/export", long: true, serve: (*Server).exportContext},
	{method: "POST", path: "/v1/contexts/{context}/export/preview", long: true, serve: (*Server).previewExport},

	{method: "GET", path: "/v1/files", limits: true, serve: (*Server).listFiles},
	{method: "GET", path: "/v1/files/paths", limits: true, serve: (*Server).countPaths},
	{method: "GET", path: "/v1/search", limits: true, serve: (*Server).search},
	{method: "GET", path: "/v1/grep", limits: true, long: true, serve: (*Server).grep},
	{method: "POST", path: "/v1/assemble", limits: true, serve: (*Server).assemble},
	{method: "GET", path: "/v1/moments", limits: true, serve: (*Server).listMoments},
	{method: "POST", path: "/v1/contexts/{context}/moments", writes: true, serve: (*Server).addMoment},
	{method: "DELETE", path: "/v1/contexts/{context}/moments/{id}", writes: true, serve: (*Server).removeMoment},

	{method: "GET", path: "/v1/artifacts", serve: (*Server).listArtifacts},
	{method: "PUT", path: "/v1/artifacts/{name}", writes: true, large: true, serve: (*Server).putArtifact},
	{method: "GET", path: "/v1/artifacts/{name}", long: true, serve: (*Server).getArtifact},

	{method: "GET", path: "/v1/usage", limits: true, long: true, serve: (*Server).getUsage},
	{method: "GET", path: "/v1/live", limits: true, serve: (*Server).listLive},
	{method: "GET", path: "/v1/store", limits: true, serve: (*Server).getStore},
	{method: "GET", path: "/v1/disk", long: true, serve: (*Server).getDisk},
	{method: "GET", path: "/v1/trash", limits: true, serve: (*Server).listTrash},
	{method: "POST", path: "/v1/trash/{item}/restore", limits: true, writes: true, serve: (*Server).restoreItem},
	{method: "GET", path: "/v1/check", limits: true, long: true, serve: (*Server).check},
	{method: "POST", path: "/v1/replica", limits: true, large: true, long: true, serve: (*Server).callReplica},
}

const (
	branch   = "/v1/contexts/{context}/branches/{branch}"
	messages = branch + "/messages"
)

type health struct {
	Status  string `json:"status"`
	Version string `json:"version,omitempty"`
	Login   string `json:"login,omitempty"`
}

func (x *Server) health(w http.ResponseWriter, _ *http.Request) error {
	return sendDocument(w, http.StatusOK, health{"ok", x.o.Version, x.o.Login})
}

// Operation is a method and a path of the API; parts of the path in braces are parameters.
type Operation struct {
	Method, Path string
	Public       bool // needs no token
	Writes       bool // answered with 403 by a server that is read-only
}

// Operations returns all operations of the API.
func Operations() []Operation {
	all := make([]Operation, len(operations))
	for i, op := range operations {
		all[i] = Operation{op.method, op.path, op.public, op.writes}
	}
	return all
}
