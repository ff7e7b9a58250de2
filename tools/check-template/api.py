"""The HTTP API in front of the functions."""

import re

from rules import listed, rule

FUNCTION = "AWS::Lambda::Function"
QUOTAS = "apigateway/latest/developerguide/http-api-quotas.html"


def integrations(s):
    """Each integration with its function: (id, integration, function's id, function)."""
    for id, i in s.of("AWS::ApiGatewayV2::Integration"):
        function_id, f = s.named(i.get("IntegrationUri"), FUNCTION)
        if f:
            yield id, i, function_id, f


@rule("integration-timeout", "an HTTP API waits 30 s at most, and its function runs no longer than it waits", QUOTAS)
def integration_timeout(s):
    for id, i, function_id, f in integrations(s):
        waits, runs = int(i.get("TimeoutInMillis", 30000)), int(f.get("Timeout", 3)) * 1000
        if not 50 <= waits <= 30000:
            yield id, f"TimeoutInMillis {waits} is not within 50 to 30000"
        if runs > waits:
            yield id, f"{function_id} may run {runs} ms, the API waits {waits}"


@rule("integration-permission", "the API may call each function it leads to", "apigateway/latest/developerguide/http-api-develop-integrations-lambda.html")
def integration_permission(s):
    allowed = {(p["FunctionName"].strip("<>").removesuffix(".Arn"), api) for _, p in s.of("AWS::Lambda::Permission") if p["Principal"] == "apigateway.amazonaws.com"
               for api in re.findall(r":<(\w+)>/", p.get("SourceArn", ""))}
    for id, i, function_id, _ in integrations(s):
        if (function_id, i["ApiId"].strip("<>")) not in allowed:
            yield id, f"the API may not call {function_id}"


@rule("route-settings", "a stage with settings of a route names one that exists and is made after it",
      "apigatewayv2/latest/api-reference/apis-apiid-stages-stagename.html")
def route_settings(s):
    routes = {r["RouteKey"]: id for id, r in s.of("AWS::ApiGatewayV2::Route")}
    for id, stage in s.of("AWS::ApiGatewayV2::Stage"):
        for key in stage.get("RouteSettings", {}):
            if key not in routes:
                yield id, f"it has settings of {key}, which is no route"
            elif routes[key] not in listed(s.resources[id].get("DependsOn")):
                yield id, f"it has settings of {key} and does not depend on {routes[key]}"


@rule("route-keys", "no two routes have one key, and each leads to an integration", "apigateway/latest/developerguide/http-api-develop-routes.html")
def route_keys(s):
    seen = {}
    for id, r in s.of("AWS::ApiGatewayV2::Route"):
        if r["RouteKey"] in seen:
            yield id, f"{seen[r['RouteKey']]} has the same key"
        seen[r["RouteKey"]] = id
        m = re.fullmatch(r"integrations/<(\w+)>", r.get("Target", ""))
        if not m or m[1] not in s.resources:
            yield id, "it leads to no integration"


@rule("authorizer", "a JWT authorizer has an issuer and audiences, and a route that asks for a token has an authorizer", "apigateway/latest/developerguide/http-api-jwt-authorizer.html")
def authorizer(s):
    for id, a in s.of("AWS::ApiGatewayV2::Authorizer"):
        jwt = a.get("JwtConfiguration", {})
        if a["AuthorizerType"] == "JWT" and (not jwt.get("Issuer") or not all(listed(jwt.get("Audience")) or [""])):
            yield id, "it has no issuer, or an audience that is empty"
        if len(listed(jwt.get("Audience"))) > 50:
            yield id, "it has more than 50 audiences"
    for id, r in s.of("AWS::ApiGatewayV2::Route"):
        _, named = s.named(r.get("AuthorizerId"), "AWS::ApiGatewayV2::Authorizer")
        if (r.get("AuthorizationType", "NONE") == "JWT") != bool(named):
            yield id, "AuthorizationType and AuthorizerId do not go together"


@rule("api-quotas", "an API has at most 300 routes, 300 integrations and 10 authorizers", QUOTAS)
def api_quotas(s):
    for kind, most in (("Route", 300), ("Integration", 300), ("Authorizer", 10)):
        count = {}
        for _, r in s.of(f"AWS::ApiGatewayV2::{kind}"):
            count[r["ApiId"]] = count.get(r["ApiId"], 0) + 1
        for api, n in count.items():
            if n > most:
                yield api.strip("<>"), f"it has {n} {kind}s"


@rule("access-log-format", "an access log's format has $context.requestId and 3 KB at most", QUOTAS)
def access_log_format(s):
    for id, stage in s.of("AWS::ApiGatewayV2::Stage"):
        text = stage.get("AccessLogSettings", {}).get("Format")
        if text is not None and ("$context.requestId" not in text and "$context.extendedRequestId" not in text or len(text) > 3072):
            yield id, "its access log has no $context.requestId, or is too long"


@rule("access-log-group", "API Gateway writes into a group under /aws/vendedlogs/: for others each adds to a resource policy of 5,120 characters",
      "AmazonCloudWatch/latest/logs/AWS-logs-and-resource-policy.html")
def access_log_group(s):
    for id, stage in s.of("AWS::ApiGatewayV2::Stage"):
        where = stage.get("AccessLogSettings", {}).get("DestinationArn")
        group_id, group = s.named(where, "AWS::Logs::LogGroup")
        if where and not (group and group.get("LogGroupName", "").startswith("/aws/vendedlogs/")):
            yield group_id or id, "it is not under /aws/vendedlogs/"
