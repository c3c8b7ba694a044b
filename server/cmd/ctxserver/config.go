package main

import (
	"errors"
	"fmt"
	"os"
	"sort"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ctxdir/ctxdir/server"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v4"
)

// config is how the server runs. Each member is a flag, an environment variable and a line of a file.
type config struct {
	Dir, DB, MasterKey, Listen, PublicURL, Cert, Key, Metrics, Audit, File string

	Issuer, ClientID, ClientSecret string
	Domains                        []string

	ModelURL, ModelName, ModelKey string

	Blobs, BlobsKeyID, BlobsSecret string
	BlobsGrace                     day

	Apart     bool
	PlainHTTP bool
	MaxBody   int64
	Idle      time.Duration
	MaxOpen   int

	env    func(string) (string, bool)
	source map[string]string // by the name of a flag: where its value is from
}

func newConfig(env func(string) (string, bool)) *config {
	return &config{env: env, source: map[string]string{}}
}

// flags defines the flags that are settings, too.
func (c *config) flags(root *cobra.Command) {
	p := root.PersistentFlags()
	p.StringVar(&c.Dir, "dir", "", "keep users and their conversations in `DIR`")
	p.StringVar(&c.DB, "db", "", "keep them in the PostgreSQL at `URL` instead; better as $CTXSERVER_DB_FILE if it has a password")
	p.StringVar(&c.MasterKey, "key", "", "encrypt the database with the key in `FILE`, or in Vault at hcvault://HOST/transit/keys/NAME")
	p.BoolVar(&c.Apart, "db-apart", false, "let no two users share a transaction, for a database that is distributed by user")
	p.StringVar(&c.Blobs, "blobs", "", "keep large content of the database in the object store at `URL`: s3://, gs:// or file:///DIR")
	p.StringVar(&c.BlobsKeyID, "blobs-key-id", "", "the `ID` of the access key of the object store")
	p.StringVar(&c.BlobsSecret, "blobs-secret", "", "the `SECRET` of that key; better as $CTXSERVER_BLOBS_SECRET_FILE")
	c.BlobsGrace = day(7 * 24 * time.Hour)
	p.Var(&c.BlobsGrace, "blobs-grace", "keep objects for `DURATION` after their rows went, for a database that is set back")
	p.StringVar(&c.File, "config", "", "read settings from `FILE`, in YAML")
	p.StringVar(&c.Listen, "listen", "127.0.0.1:7434", "listen at `ADDR`")
	p.StringVar(&c.PublicURL, "public-url", "", "accept requests for the host of `URL`: how users reach the server")
	p.StringVar(&c.Cert, "tls-cert", "", "use TLS with the certificate in `FILE`")
	p.StringVar(&c.Key, "tls-key", "", "use TLS with the key in `FILE`")
	p.BoolVar(&c.PlainHTTP, "plain-http", false, "listen without TLS where others can connect, behind a proxy that has it")
	p.StringVar(&c.Metrics, "metrics", "", "serve metrics for Prometheus at `ADDR`, under /metrics")
	p.StringVar(&c.Audit, "audit", "changes", "log who did what, without content: none, `changes` or all")
	p.StringVar(&c.Issuer, "oidc-issuer", "", "let people sign in with the identity provider at `URL`, by OpenID Connect")
	p.StringVar(&c.ClientID, "oidc-client-id", "", "the `ID` of this server at the identity provider")
	p.StringVar(&c.ClientSecret, "oidc-client-secret", "", "the `SECRET` of this server there; better as $CTXSERVER_OIDC_CLIENT_SECRET_FILE")
	p.StringSliceVar(&c.Domains, "oidc-domains", nil, "who may sign in: verified mail addresses of these `DOMAINS`, or any")
	p.StringVar(&c.ModelURL, "model-url", "", "let agents ask the model at `URL`, which has the chat API of OpenAI")
	p.StringVar(&c.ModelName, "model-name", "", "use the model `NAME` there")
	p.StringVar(&c.ModelKey, "model-key", "", "the `KEY` of the model; better as $CTXSERVER_MODEL_KEY_FILE")
	p.Int64Var(&c.MaxBody, "max-body", 256<<20, "refuse requests with more than `BYTES`")
	p.DurationVar(&c.Idle, "idle", time.Minute, "close a store that nobody used for `DURATION`")
	p.IntVar(&c.MaxOpen, "max-open", 1000, "close unused stores above `N`")
}

// isSetting reports whether a flag is a setting: a name in the environment and in the file.
func isSetting(f *pflag.Flag) bool {
	return f.Name != "json" && f.Name != "help" && f.Name != "version"
}

// isSecret reports whether nobody may see the value of a setting.
func isSecret(f *pflag.Flag) bool {
	return f.Name == "db" || f.Name == "model-key" || strings.HasSuffix(f.Name, "-secret")
}

// variable is the name of a setting in the environment.
func variable(name string) string {
	return "CTXSERVER_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// apply takes settings from the file where no flag sets them, and from the environment.
func (c *config) apply(root *cobra.Command) error {
	all := map[string]*pflag.Flag{}
	root.PersistentFlags().VisitAll(func(f *pflag.Flag) {
		if !isSetting(f) {
			return
		}
		if all[f.Name], c.source[f.Name] = f, "default"; f.Changed {
			c.source[f.Name] = "flag"
		}
	})
	if err := c.fromEnvironment("config", all["config"]); err != nil {
		return err
	}
	if err := c.fromFile(all); err != nil {
		return err
	}
	for name, f := range all {
		if err := c.fromEnvironment(name, f); err != nil {
			return err
		}
	}
	return c.check()
}

func (c *config) fromEnvironment(name string, f *pflag.Flag) error {
	v := variable(name)
	value, ok := c.env(v)
	from := "$" + v
	if path, is := c.env(v + "_FILE"); is {
		if ok {
			return fmt.Errorf("%s and %s_FILE are both set", v, v)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("%s_FILE: %w", v, err)
		}
		value, ok, from = strings.TrimRight(string(b), "\r\n"), true, "$"+v+"_FILE"
	}
	if !ok {
		return nil
	}
	if err := f.Value.Set(value); err != nil {
		return fmt.Errorf("%s: %w", v, err)
	}
	c.source[name] = from
	return nil
}

func (c *config) fromFile(all map[string]*pflag.Flag) error {
	if c.File == "" {
		return nil
	}
	b, err := os.ReadFile(c.File)
	if err != nil {
		return err
	}
	var lines map[string]string
	if err := yaml.Unmarshal(b, &lines); err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	for name, value := range lines {
		f := all[name]
		if f == nil || name == "config" {
			return fmt.Errorf("%s: there is no setting %q", c.File, name)
		}
		if c.source[name] == "flag" {
			continue
		}
		if err := f.Value.Set(value); err != nil {
			return fmt.Errorf("%s: %s: %w", c.File, name, err)
		}
		c.source[name] = c.File
	}
	return nil
}

func (c *config) check() error {
	if isService(c.MasterKey) {
		if _, err := masterKey(c.MasterKey); err != nil {
			return err
		}
	}
	switch a := server.Audit(c.Audit); {
	case a != server.AuditNone && a != server.AuditChanges && a != server.AuditAll:
		return fmt.Errorf("--audit %s: expected none, changes or all", c.Audit)
	case c.Dir != "" && c.DB != "":
		return errors.New("--dir and --db exclude each other")
	case c.DB == "" && (c.MasterKey != "" || c.Apart):
		return errors.New("--key and --db-apart are for a database: --db")
	case c.DB == "" && c.Blobs != "":
		return errors.New("--blobs is for a database: --db; a folder keeps all content itself")
	case c.Blobs == "" && (c.BlobsKeyID != "" || c.BlobsSecret != ""):
		return errors.New("--blobs-key-id and --blobs-secret are for an object store: --blobs")
	case c.BlobsGrace < 0:
		return errors.New("--blobs-grace must not be negative")
	case (c.Cert == "") != (c.Key == ""):
		return fmt.Errorf("--tls-cert and --tls-key need each other")
	case c.MaxBody < 1 || c.MaxOpen < 1 || c.Idle <= 0:
		return fmt.Errorf("--max-body, --max-open and --idle must be positive")
	}
	return nil
}

func (a *app) configCmd() *cobra.Command {
	return &cobra.Command{
		Use: "config", Short: "Print the settings that count, and where each is from", Args: names(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var all []*pflag.Flag
			cmd.Root().PersistentFlags().VisitAll(func(f *pflag.Flag) {
				if isSetting(f) {
					all = append(all, f)
				}
			})
			sort.Slice(all, func(i, j int) bool { return all[i].Name < all[j].Name })
			w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
			for _, f := range all {
				value := f.Value.String()
				if isSecret(f) && value != "" {
					value = "(secret)"
				}
				if a.json {
					r := map[string]string{"record": "setting", "name": f.Name, "value": value, "source": a.config.source[f.Name]}
					if err := a.print(r, ""); err != nil {
						return err
					}
					continue
				}
				fmt.Fprintf(w, "%s\t%s\t%s\n", f.Name, value, a.config.source[f.Name])
			}
			return w.Flush()
		},
	}
}
