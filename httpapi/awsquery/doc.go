// Package awsquery is the AWS Query protocol: requests as Form, responses in
// XML with Writer.
package awsquery
