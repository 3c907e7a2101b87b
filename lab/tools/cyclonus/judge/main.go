// Asks cyclonus which traffic NetworkPolicies let through. It reads one JSON document from stdin, {"policies": […], "traffic": […]}, with
// policies as the API server has them and traffic as cyclonus has it, and writes a list with one {"Ingress": …, "Egress": …} for
// each: whether the receiver's policies let it in, and the sender's let it out.
package main

import (
	"encoding/json"
	"log"
	"os"

	"github.com/mattfenwick/cyclonus/pkg/matcher"
	networkingv1 "k8s.io/api/networking/v1"
)

type question struct {
	Policies []*networkingv1.NetworkPolicy `json:"policies"`
	Traffic  []*matcher.Traffic            `json:"traffic"`
}

type answer struct{ Ingress, Egress bool }

func main() {
	var asked question
	if err := json.NewDecoder(os.Stdin).Decode(&asked); err != nil {
		log.Fatal(err)
	}
	policies := matcher.BuildNetworkPolicies(false, asked.Policies)
	answers := make([]answer, len(asked.Traffic))
	for i, traffic := range asked.Traffic {
		result := policies.IsTrafficAllowed(traffic)
		answers[i] = answer{Ingress: result.Ingress.IsAllowed(), Egress: result.Egress.IsAllowed()}
	}
	if err := json.NewEncoder(os.Stdout).Encode(answers); err != nil {
		log.Fatal(err)
	}
}
