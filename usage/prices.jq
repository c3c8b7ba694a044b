# Updates the prices of the models in prices.json from LiteLLM's model_prices_and_context_window.json:
#
#   jq -r --arg date 2026-12 --slurpfile old usage/prices.json -f usage/prices.jq LITELLM.json >/tmp/prices.json
#
# A model is new once it has a line in prices.json, with an empty object. Models that the source has no more keep their prices.
def name:
  ascii_downcase | sub("^(xai|zai|gemini|deepseek|dashscope|mistral|moonshot|minimax|bedrock_mantle)/"; "")
  | sub("-v[0-9](:[0-9]+)?$"; "") | sub("-20[2-9][0-9][01][0-9][0-3][0-9]$"; "");
def prices:
  with_entries(select(.key | test("^((in|out)put_cost_per_token|cache_read_input_token_cost|"
    + "cache_creation_input_token_cost(_above_1hr)?)(_above_[0-9]+k_tokens)?$|^tiered_pricing$")));
(with_entries(select(.value | type == "object") | {key: (.key | name), value: (.value | prices)} | select(.value != {}))) as $new
| $old[0] | .about.date = $date | to_entries
| map("  \(.key | tojson): \(if .key == "about" then .value else $new[.key] // .value end | tojson)")
| "{\n" + join(",\n") + "\n}"
