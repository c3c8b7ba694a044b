package adk

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/contrib/sessions"
	"google.golang.org/adk/artifact"
	"google.golang.org/genai"
)

// ArtifactService is an [artifact.Service] in a ctxdir store. Data is in the blobs of the store, each once.
type ArtifactService struct{ files *sessions.Artifacts }

var _ artifact.Service = (*ArtifactService)(nil)

// NewArtifactService returns the artifacts in a store, which may have sessions too.
func NewArtifactService(store *ctxdir.Store) *ArtifactService {
	return &ArtifactService{sessions.NewArtifacts(store, tool)}
}

// Save implements [artifact.Service]. The version is the next one; the one in the request is ignored.
func (s *ArtifactService) Save(ctx context.Context, req *artifact.SaveRequest) (*artifact.SaveResponse, error) {
	if err := req.Validate(); err != nil {
		return nil, err
	}
	v := sessions.Version{Type: "text/plain"}
	if data := req.Part.InlineData; data != nil {
		v.Type = data.MIMEType
	}
	var err error
	if v.Body, err = sessions.Marshal(req.Part); err != nil {
		return nil, fmt.Errorf("save artifact: %w", err)
	}
	number, err := s.files.Save(ctx, sessions.Key{App: req.AppName, User: req.UserID, ID: req.SessionID}, req.FileName, v)
	if err != nil {
		return nil, fmt.Errorf("save artifact: %w", err)
	}
	return &artifact.SaveResponse{Version: number}, nil
}

// Load implements [artifact.Service].
func (s *ArtifactService) Load(ctx context.Context, req *artifact.LoadRequest) (*artifact.LoadResponse, error) {
	if err := req.Validate(); err != nil {
		return nil, err
	}
	key := sessions.Key{App: req.AppName, User: req.UserID, ID: req.SessionID}
	v, err := s.files.Load(ctx, key, req.FileName, req.Version)
	if err != nil {
		return nil, fmt.Errorf("load artifact: %w", err)
	}
	part := &genai.Part{}
	return &artifact.LoadResponse{Part: part}, json.Unmarshal(v.Body, part)
}

// Delete implements [artifact.Service]. What it deletes moves to the trash of the store for a week.
func (s *ArtifactService) Delete(ctx context.Context, req *artifact.DeleteRequest) error {
	if err := req.Validate(); err != nil {
		return err
	}
	key := sessions.Key{App: req.AppName, User: req.UserID, ID: req.SessionID}
	return s.files.Delete(ctx, key, req.FileName, req.Version)
}

// List implements [artifact.Service]. It opens no file.
func (s *ArtifactService) List(ctx context.Context, req *artifact.ListRequest) (*artifact.ListResponse, error) {
	if err := req.Validate(); err != nil {
		return nil, err
	}
	files, err := s.files.List(ctx, sessions.Key{App: req.AppName, User: req.UserID, ID: req.SessionID})
	return &artifact.ListResponse{FileNames: files}, err
}

// Versions implements [artifact.Service].
func (s *ArtifactService) Versions(ctx context.Context, req *artifact.VersionsRequest) (*artifact.VersionsResponse, error) {
	if err := req.Validate(); err != nil {
		return nil, err
	}
	key := sessions.Key{App: req.AppName, User: req.UserID, ID: req.SessionID}
	numbers, err := s.files.Versions(ctx, key, req.FileName)
	return &artifact.VersionsResponse{Versions: numbers}, err
}

// GetArtifactVersion implements [artifact.Service].
func (s *ArtifactService) GetArtifactVersion(
	ctx context.Context, req *artifact.GetArtifactVersionRequest,
) (*artifact.GetArtifactVersionResponse, error) {
	if err := req.Validate(); err != nil {
		return nil, err
	}
	key := sessions.Key{App: req.AppName, User: req.UserID, ID: req.SessionID}
	v, err := s.files.Load(ctx, key, req.FileName, req.Version)
	if err != nil {
		return nil, err
	}
	found := &artifact.ArtifactVersion{Version: v.Number, MimeType: v.Type, CreateTime: createTime(v.Time)}
	return &artifact.GetArtifactVersionResponse{ArtifactVersion: found}, nil
}
