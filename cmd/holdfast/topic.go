package main

import (
	"fmt"
	"net/http"
	"net/url"
	"text/tabwriter"

	"holdfast.internal/httpapi/admin"
	"holdfast.internal/sns"
)

type topicCommand struct {
	List          topicList          `cmd:"" help:"List topics, and what became of what was published."`
	Subscriptions topicSubscriptions `cmd:"" help:"List the subscriptions of a topic."`
	RotateKey     topicRotateKey     `cmd:"" help:"Sign what is published from now on with a new key."`
}

type topicList struct {
	oneNode
	jsonFlag
	staleFlag
	Account string `placeholder:"ID" help:"Topics of this account only."`
	Prefix  string `placeholder:"TEXT" help:"Topics whose names begin so only."`
}

func (c *topicList) Run(out *console) error {
	query := url.Values{"account": {c.Account}, "prefix": {c.Prefix}}
	topics := []admin.Topic{}
	if err := callAdmin(out.ctx, http.MethodGet, adminURL(c.Admin)+"/topics"+c.query(query), nil, lookTimeout, &topics); err != nil {
		return err
	}
	if c.JSON {
		return writeJSON(out.stdout, topics)
	}
	table := tabwriter.NewWriter(out.stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "account\tname\tsubscriptions\tpending\tpublished\tdelivered\tfiltered\tfailed\tin dead letters")
	for _, t := range topics {
		remark := ""
		if t.Damaged {
			remark = "\tdamaged: it can only be deleted"
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d%s\n", t.Account, t.Name, t.Confirmed, t.Pending,
			t.Published, t.Delivered, t.Filtered, t.Failed, t.Redriven, remark)
	}
	return flush(table)
}

type topicSubscriptions struct {
	oneNode
	jsonFlag
	staleFlag
	Account string `placeholder:"ID" help:"Account of the topic (the cluster's own)."`
	Name    string `arg:"" help:"Name of the topic, or its ARN."`
}

func (c *topicSubscriptions) Run(out *console) error {
	account, name := c.Account, c.Name
	if arn, ok := sns.ParseARN(c.Name); ok && arn.Service == "sns" {
		account, name = arn.Account, arn.Resource
	}
	if name == "" {
		return usageError("want the name of a topic, or its ARN")
	}
	account, err := accountOr(out, c.Admin, account, c.staleFlag)
	if err != nil {
		return err
	}
	target := adminURL(c.Admin) + "/topics/" + url.PathEscape(account) + "/" + url.PathEscape(name) + "/subscriptions"
	all := []admin.Subscription{}
	for after, more := "", true; more; more = after != "" {
		var page admin.TopicSubscriptions
		if err := callAdmin(out.ctx, http.MethodGet, target+c.query(url.Values{"after": {after}}), nil, lookTimeout, &page); err != nil {
			return fmt.Errorf("topic %s: %w", c.Name, err)
		}
		all, after = append(all, page.Subscriptions...), page.Next
	}
	if c.JSON {
		return writeJSON(out.stdout, all)
	}
	table := tabwriter.NewWriter(out.stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "protocol\tendpoint\tstate\tsubscription")
	for _, s := range all {
		state := "confirmed"
		if s.Pending {
			state = "pending"
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", s.Protocol, s.Endpoint, state, s.ARN)
	}
	return flush(table)
}

type topicRotateKey struct {
	oneNode
	jsonFlag
}

func (c *topicRotateKey) Run(out *console) error {
	var answer map[string]string
	if err := callAdmin(out.ctx, http.MethodPost, adminURL(c.Admin)+"/signing-keys", nil, queueTimeout, &answer); err != nil {
		return err
	}
	if c.JSON {
		return writeJSON(out.stdout, answer)
	}
	_, err := fmt.Fprintf(out.stdout, "the new certificate is %s\n", answer["certificate"])
	return err
}
