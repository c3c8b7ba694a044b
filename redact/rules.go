package redact

// rule is a pattern of the form: a prefix that nothing else has, and a run of some characters.
type rule struct {
	name     string // that of gitleaks, where it has one: https://github.com/gitleaks/gitleaks/blob/master/config/gitleaks.toml
	kind     Kind
	prefixes []string
	body     *class
	min, max int  // bytes after the prefix; max 0 is any number
	digits   bool // the run must have a digit: the prefix is also one of words
	after    bool // only what follows the prefix is replaced
}

// class is a set of bytes.
type class [256]bool

func classOf(parts ...string) *class {
	var c class
	for _, p := range parts {
		if len(p) == 3 && p[1] == '-' {
			for b := int(p[0]); b <= int(p[2]); b++ {
				c[b] = true
			}
			continue
		}
		for i := range len(p) {
			c[p[i]] = true
		}
	}
	return &c
}

var (
	capitals = classOf("A-Z", "0-9")
	letters  = classOf("A-Z", "a-z", "0-9")
	names    = classOf("A-Z", "a-z", "0-9", "_")
	dashed   = classOf("A-Z", "a-z", "0-9", "_", "-")
	dotted   = classOf("A-Z", "a-z", "0-9", "_", "-", ".")
	hex      = classOf("0-9", "a-f")
	webhook  = classOf("A-Z", "a-z", "0-9", "/")
	bearer   = classOf("A-Z", "a-z", "0-9", "-", "._~+/=")
)

// rules are the keys and tokens of services. A comment names the documentation of the vendor where the form is there, and
// not only in gitleaks.
var rules = [...]rule{
	// docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html, "Understanding unique ID prefixes"
	{name: "aws-access-token", kind: Key, prefixes: []string{"AKIA", "ASIA", "ABIA", "ACCA"}, body: capitals, min: 16, max: 16},
	// platform.claude.com/docs/en/api: keys begin with sk-ant-; subscriptions and administration have prefixes of their own
	{name: "anthropic-api-key", kind: Key, prefixes: []string{"sk-ant-"}, body: dashed, min: 24},
	// platform.openai.com/docs/api-reference/authentication; OpenRouter and others copy the prefix
	{name: "openai-api-key", kind: Key, prefixes: []string{"sk-"}, body: dashed, min: 32, digits: true},
	// cloud.google.com/docs/authentication/api-keys
	{name: "gcp-api-key", kind: Key, prefixes: []string{"AIza"}, body: dashed, min: 35},
	// developers.google.com/identity/protocols/oauth2: the secret of a client
	{name: "google-client-secret", kind: Key, prefixes: []string{"GOCSPX-"}, body: dashed, min: 24},
	// docs.stripe.com/keys and docs.stripe.com/webhooks
	{
		name: "stripe-access-token", kind: Key, prefixes: []string{"sk_live_", "sk_test_", "sk_prod_", "rk_live_", "rk_test_", "rk_prod_"},
		body: letters, min: 10,
	},
	{name: "stripe-webhook-secret", kind: Key, prefixes: []string{"whsec_"}, body: letters, min: 24},
	{name: "sendgrid-api-token", kind: Key, prefixes: []string{"SG."}, body: dotted, min: 60},
	{name: "twilio-api-key", kind: Key, prefixes: []string{"SK"}, body: hex, min: 32, max: 32},
	{name: "databricks-api-token", kind: Key, prefixes: []string{"dapi"}, body: hex, min: 32},
	// console.groq.com, docs.x.ai, docs.perplexity.ai, replicate.com/docs
	{name: "groq-api-key", kind: Key, prefixes: []string{"gsk_"}, body: letters, min: 40},
	{name: "xai-api-key", kind: Key, prefixes: []string{"xai-"}, body: letters, min: 40},
	{name: "perplexity-api-key", kind: Key, prefixes: []string{"pplx-"}, body: letters, min: 40},
	{name: "replicate-api-token", kind: Key, prefixes: []string{"r8_"}, body: letters, min: 36},
	// age-encryption.org/v1
	{name: "age-secret-key", kind: Key, prefixes: []string{"AGE-SECRET-KEY-1"}, body: capitals, min: 58},
	// docs.slack.dev/messaging/sending-messages-using-incoming-webhooks
	{name: "slack-webhook-url", kind: Key, prefixes: []string{"hooks.slack.com/services/"}, body: webhook, min: 30},

	// github.blog/2021-04-05-behind-githubs-new-authentication-token-formats
	{name: "github-pat", kind: Token, prefixes: []string{"ghp_"}, body: letters, min: 36},
	{name: "github-oauth", kind: Token, prefixes: []string{"gho_"}, body: letters, min: 36},
	{name: "github-app-token", kind: Token, prefixes: []string{"ghu_", "ghs_"}, body: dotted, min: 36},
	{name: "github-refresh-token", kind: Token, prefixes: []string{"ghr_"}, body: letters, min: 36},
	{name: "github-fine-grained-pat", kind: Token, prefixes: []string{"github_pat_"}, body: names, min: 60},
	// docs.gitlab.com/security/tokens/#token-prefixes
	{
		name: "gitlab-pat", kind: Token, prefixes: []string{
			"glpat-", "gldt-", "glrt-", "glptt-", "glcbt-", "gloas-", "glsoat-", "glft-", "glimt-", "glagent-", "glffct-",
		},
		body: dotted, min: 20,
	},
	// docs.slack.dev/authentication/tokens
	{
		name: "slack-bot-token", kind: Token, body: dotted, min: 20,
		prefixes: []string{"xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxe-", "xoxe.xox", "xoxc-", "xoxd-"},
	},
	{name: "slack-app-token", kind: Token, prefixes: []string{"xapp-"}, body: dashed, min: 20},
	// github.blog/changelog/2021-09-23-npm-has-a-new-access-token-format
	{name: "npm-access-token", kind: Token, prefixes: []string{"npm_"}, body: letters, min: 36},
	// pypi.org/help/#apitoken: a macaroon for pypi.org or test.pypi.org
	{name: "pypi-upload-token", kind: Token, prefixes: []string{"pypi-AgE"}, body: dashed, min: 50},
	// huggingface.co/docs/hub/security-tokens
	{name: "huggingface-access-token", kind: Token, prefixes: []string{"hf_", "api_org_"}, body: letters, min: 30},
	// docs.cloud.google.com/docs/authentication/token-types: access tokens
	{name: "google-oauth-token", kind: Token, prefixes: []string{"ya29."}, body: dotted, min: 30},
	{name: "digitalocean-pat", kind: Token, prefixes: []string{"dop_v1_", "doo_v1_", "dor_v1_"}, body: hex, min: 64},
	{name: "docker-pat", kind: Token, prefixes: []string{"dckr_pat_", "dckr_oat_"}, body: dashed, min: 24},
	{name: "grafana-service-account-token", kind: Token, prefixes: []string{"glsa_", "glc_"}, body: names, min: 32},
	{name: "vault-service-token", kind: Token, prefixes: []string{"hvs.", "hvb."}, body: dashed, min: 24},
	{name: "linear-api-key", kind: Token, prefixes: []string{"lin_api_"}, body: letters, min: 32},
	{name: "notion-api-token", kind: Token, prefixes: []string{"ntn_"}, body: letters, min: 40},
	{name: "shopify-access-token", kind: Token, prefixes: []string{"shpat_", "shpca_", "shppa_", "shpss_"}, body: letters, min: 32},
	// RFC 6750, 2.1: the header of a request
	{name: "bearer", kind: Token, prefixes: []string{"Bearer ", "bearer ", "BEARER "}, body: bearer, min: 16, digits: true, after: true},
	// command lines, such as curl --oauth2-bearer
	{
		name: "flag", kind: Key, prefixes: []string{"--password ", "--token ", "--api-key ", "--secret ", "--oauth2-bearer ", "--auth-token "},
		body: bearer, min: 8, digits: true, after: true,
	},
}

// byPair are the rules by the first two bytes of a prefix.
var byPair = func() map[[2]byte][]prefixed {
	all := map[[2]byte][]prefixed{}
	for i := range rules {
		for _, p := range rules[i].prefixes {
			pair := [2]byte{p[0], p[1]}
			all[pair] = append(all[pair], prefixed{p, i, &rules[i]})
		}
	}
	return all
}()

type prefixed struct {
	prefix string
	number int // of the rule
	*rule
}

// firsts are the first bytes of prefixes, and pairs the first two: most of a text is neither.
var firsts, pairs = func() (f class, p [1 << 16]bool) {
	for pair := range byPair {
		f[pair[0]], p[int(pair[0])<<8|int(pair[1])] = true, true
	}
	return f, p
}()
