package pkg_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTemplateDoors: what is added beside the resources there are may be a door
// that no other rule looks at: a function URL, a policy that lets everybody send
// to the queue, a website in every browser. So each kind of resource is listed.
func TestTemplateDoors(t *testing.T) {
	t.Parallel()
	b := readBundle(t)
	for id, resource := range asMap(t, b["Resources"]) {
		require.Contains(t, []string{
			"AWS::ApiGatewayV2::Api", "AWS::ApiGatewayV2::Authorizer", "AWS::ApiGatewayV2::Integration", "AWS::ApiGatewayV2::Route",
			"AWS::ApiGatewayV2::Stage", "AWS::CloudWatch::Alarm", "AWS::DynamoDB::Table", "AWS::Events::Rule", "AWS::IAM::Role",
			"AWS::Lambda::EventSourceMapping", "AWS::Lambda::Permission", "AWS::Logs::LogGroup", "AWS::Logs::MetricFilter", "AWS::S3::Bucket", "AWS::S3::BucketPolicy",
			"AWS::SQS::Queue", "AWS::Serverless::Function",
		}, asMap(t, resource)["Type"], id)
	}
	for _, id := range b.ids(t, functionType) {
		require.NotContains(t, b.properties(t, id, functionType), "FunctionUrlConfig", id)
		require.NotContains(t, b.properties(t, id, functionType), "Events", "%s: each event's door is written out", id)
	}
	api := b.properties(t, "Api", "AWS::ApiGatewayV2::Api")
	for _, property := range []string{"CorsConfiguration", "Body", "BodyS3Location", "Target"} {
		require.NotContains(t, api, property)
	}
}
